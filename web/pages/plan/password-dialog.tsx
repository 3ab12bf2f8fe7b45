import { useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import { beginSession } from "../../api/session.ts";
import type { Authenticated } from "../../api/types.ts";
import { AttemptButton, Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { readForm } from "../../parts/form.ts";
import { NewPassword, useNewPassword } from "../../parts/new-password.tsx";
import { say } from "../../parts/said.tsx";

/** Changes the password; this tab continues with the session returned by the change. */
export function PasswordDialog({ loginId, onClose }: { loginId: string; onClose(): void }) {
  const form = useRef<HTMLFormElement>(null);
  const newPassword = useNewPassword(form, "new_password");
  const attempt = useAttempt(
    async () => {
      const { current_password, new_password } = readForm(form.current);
      const body = { current_password, new_password };
      beginSession((await call<Authenticated>("/v1/tenants/password", { method: "PUT", body })).token);
      say("Password changed. Every other session has ended.");
      onClose();
    },
    { fields: ["current_password", "new_password"] },
  );

  function submit(event: Event): void {
    event.preventDefault();
    if (newPassword.isGood()) attempt.run();
  }

  return (
    <Dialog title="Change the password" onClose={onClose}>
      <form ref={form} class="form" onSubmit={submit}>
        {/* Tells password managers whose password this is. */}
        <input
          class="visually-hidden"
          autocomplete="username"
          value={loginId}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <Field
          label="Current password"
          name="current_password"
          type="password"
          autocomplete="current-password"
          wrong={attempt.wrong("current_password")}
          required
        />
        <NewPassword
          label="New password"
          name="new_password"
          wrong={newPassword.wrong ?? attempt.wrong("new_password")}
        />
        <p class="soft">This ends every other session, in browsers and in programs. API keys keep working.</p>
        <Refusal of={attempt} />
        <div class="buttons">
          <Button onClick={onClose}>Cancel</Button>
          <AttemptButton of={attempt} type="submit">
            Change the password
          </AttemptButton>
        </div>
      </form>
    </Dialog>
  );
}
