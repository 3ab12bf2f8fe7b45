import { useState } from "preact/hooks";
import { ApiError, call } from "../api/client.ts";
import type { Authenticated } from "../api/types.ts";
import { Button } from "../parts/button.tsx";
import { Field } from "../parts/field.tsx";
import { PageHead } from "../parts/page.tsx";
import { beginSession, type NoSession, noSession } from "../session/session.ts";
import { Brand } from "../shell.tsx";

const why: Record<NoSession, string | null> = {
  none: null,
  left: "You are signed out.",
  ended: "Your session has ended. Sign in again; you will be where you were.",
  deleted: "The account is deleted.",
};

/** Signs in by tenant id or e-mail, at whatever view was asked for. */
export function SignInPage() {
  const [wrong, setWrong] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);

  async function signIn(form: HTMLFormElement): Promise<void> {
    const fields = new FormData(form);
    setBusy(true);
    setWrong(null);
    try {
      const answer = await call<Authenticated>("/v1/tenants/auth/login", {
        method: "POST",
        body: { loginId: fields.get("loginId"), password: fields.get("password") },
        credential: null,
      });
      beginSession(answer.token);
    } catch (error) {
      setWrong(error instanceof ApiError ? error.message : String(error));
      setBusy(false);
    }
  }

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
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void signIn(event.currentTarget);
        }}
      >
        <Field label="Tenant id or e-mail" name="loginId" autocomplete="username" required />
        <Field label="Password" name="password" type="password" autocomplete="current-password" required />
        {wrong !== null && (
          <p class="notice bad" role="alert">
            {wrong}
          </p>
        )}
        <div class="buttons">
          <Button kind="primary" type="submit" busy={isBusy}>
            Sign in
          </Button>
          <a href="/sign-up">Create an account</a>
        </div>
      </form>
    </main>
  );
}
