import "../styles/front.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { endSession } from "../api/session.ts";
import { AttemptButton, Refusal, useAttempt } from "../parts/attempt.tsx";
import { Brand } from "../parts/brand.tsx";
import { Field } from "../parts/field.tsx";
import { readForm } from "../parts/form.ts";
import { NewPassword, useNewPassword } from "../parts/new-password.tsx";
import { PageHead } from "../parts/page.tsx";
import { meetServer, server } from "../session/server.ts";

/** The token in the link of an e-mail: neither a server nor a page opened later sees it. */
const token = location.pathname === "/new-password" ? location.hash.slice(1) : "";

/** For users who have lost their password: requests an e-mail with a link, and is where that link leads. */
export function NewPasswordPage() {
  const form = useRef<HTMLFormElement>(null);
  const [isDone, setDone] = useState(false);
  const password = useNewPassword(form, "password");
  const attempt = useAttempt(async () => {
    const { loginId = "", password: new_password = "" } = readForm(form.current);
    if (token !== "") {
      if (!password.isGood()) return;
      await post("reset-password", { token, new_password });
      endSession("left");
    } else await post("forgot-password", { loginId: loginId.trim() });
    setDone(true);
  });

  useEffect(() => {
    meetServer().catch(() => {});
    history.replaceState(null, "", location.pathname);
  }, []);

  return (
    <main class="front narrow">
      <Brand />
      <PageHead title="Set a new password" />
      {isDone && (
        <p class="notice" role="status">
          {token === ""
            ? "If there is such an account and its address can get mail, a link is on its way. It works for an hour. "
            : "The password is set. Every session of the account has ended. "}
          {signIn}
        </p>
      )}
      {!isDone && token === "" && server.value?.mail === false ? (
        <p class="notice">This server sends no mail. Ask its operator for a new password.</p>
      ) : (
        !isDone && (
          <form
            ref={form}
            class="form"
            onSubmit={(event) => {
              event.preventDefault();
              attempt.run();
            }}
          >
            {token === "" ? (
              <Field label="Tenant id or e-mail" name="loginId" autocomplete="username" required />
            ) : (
              <NewPassword label="New password" name="password" wrong={password.wrong} />
            )}
            <Refusal of={attempt} />
            <div class="buttons">
              <AttemptButton of={attempt} type="submit">
                {token === "" ? "Send a link" : "Set the password"}
              </AttemptButton>
              {signIn}
            </div>
          </form>
        )
      )}
    </main>
  );
}

const signIn = <a href="/sign-in">Sign in</a>;

const post = (path: string, body: object) =>
  call<void>(`/v1/tenants/auth/${path}`, { method: "POST", body, credential: null });
