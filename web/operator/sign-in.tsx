import { useRef } from "preact/hooks";
import { AttemptButton, Refusal, useAttempt } from "../parts/attempt.tsx";
import { Brand } from "../parts/brand.tsx";
import { Field } from "../parts/field.tsx";
import { readForm } from "../parts/form.ts";
import { PageHead } from "../parts/page.tsx";
import { type NotIn, signIn } from "./api/session.ts";

const reasons: Record<NotIn, string | null> = {
  none: null,
  left: "You are signed out.",
  ended: "Your session has ended. Sign in again to go on.",
};

export function SignInPage({ why }: { why: NotIn }) {
  const form = useRef<HTMLFormElement>(null);
  const attempt = useAttempt(
    async () => {
      const { token = "" } = readForm(form.current);
      await signIn(token.trim());
    },
    { words: { wrong_operator_token: "This is not the operator token." } },
  );
  return (
    <main class="front narrow">
      <Brand href="/operator" />
      <PageHead title="Operator" />
      {reasons[why] && (
        <p class="notice" role="status">
          {reasons[why]}
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
          label="Operator token"
          name="token"
          type="password"
          autocomplete="current-password"
          hint={
            <>
              <code>postrider operator token</code> prints it, on the server's machine. It is in the file{" "}
              <code>operator-token</code> of the data directory.
            </>
          }
          required
        />
        <Refusal of={attempt} />
        <div class="buttons">
          <AttemptButton of={attempt} type="submit">
            Sign in
          </AttemptButton>
          <a href="/">To the dashboard</a>
        </div>
      </form>
    </main>
  );
}
