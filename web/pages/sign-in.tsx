import { Brand } from "../parts/brand.tsx";
import "../styles/front.css";
import { useEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { endedAccount, type NoSession, noSession } from "../api/session.ts";
import { AttemptButton, Refusal, useAttempt } from "../parts/attempt.tsx";
import { Field } from "../parts/field.tsx";
import { readForm } from "../parts/form.ts";
import { PageHead } from "../parts/page.tsx";
import { signIn } from "../session/sign-in.ts";

const why: Record<NoSession, string | null> = {
  none: null,
  left: "You are signed out.",
  ended: "Your session has ended. Sign in again to continue where you were.",
  deleted: "Your account has been deleted.",
};

/** Signs in by tenant id or e-mail, at whichever view was requested. */
export function SignInPage() {
  const { path, route } = useLocation();
  const form = useRef<HTMLFormElement>(null);
  const attempt = useAttempt(
    async () => {
      const { loginId = "", password = "" } = readForm(form.current);
      await signIn(loginId.trim(), password, () => {
        if (path === "/sign-in") route("/", true);
      });
    },
    { words: { wrong_credentials: "The id or the password is wrong." } },
  );

  /**
   * The start page is shown only while nothing is known about the visitor. The account of before is none of it any more:
   * signing in to that in another tab must not replace the one that is created here.
   */
  const goToStart = () => {
    noSession.value = "none";
    endedAccount.value = null;
  };

  return (
    <main class="front narrow">
      <Brand />
      <PageHead title="Sign in" />
      {why[noSession.value] && (
        <p class="notice" role="status">
          {why[noSession.value]}
        </p>
      )}
      <form
        ref={form}
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          attempt.run();
        }}
      >
        <Field
          label="Tenant id or e-mail"
          name="loginId"
          defaultValue={endedAccount.value ?? ""}
          autocomplete="username"
          hint="The id that starts with t, or the account's e-mail above the free tier."
          required
        />
        <Field label="Password" name="password" type="password" autocomplete="current-password" required />
        <Refusal of={attempt} />
        <div class="buttons">
          <AttemptButton of={attempt} type="submit">
            Sign in
          </AttemptButton>
          <a href="/new-password">Forgot your password?</a>
          <a href="/" onClick={goToStart}>
            Create an account
          </a>
        </div>
      </form>
    </main>
  );
}

/** Redirects users who are already signed in away from signing in and up. */
export function SignedInAlready() {
  const { route } = useLocation();
  useEffect(() => route("/", true), [route]);
  return null;
}
