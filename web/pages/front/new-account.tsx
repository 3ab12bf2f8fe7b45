import { h } from "preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { CreatedTenant } from "../../api/types.ts";
import { AttemptButton, Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Brand } from "../../parts/brand.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Download } from "../../parts/download.tsx";
import { PageHead } from "../../parts/page.tsx";
import { Reveal } from "../../parts/secret.tsx";
import { server } from "../../session/server.ts";
import { signIn } from "../../session/sign-in.ts";

/**
 * The only time the password of a new free account is shown; because it is in a form that is submitted, password managers
 * offer to save it.
 */
export function NewAccount({ account: { tenant_id: id, password = "" } }: { account: CreatedTenant }) {
  const { route } = useLocation();
  const attempt = useAttempt(() => signIn(id, password, () => route("/welcome", true)));
  const [isShown, setShown] = useState(false);
  const kept = `Postrider: ${server.value?.baseUrl ?? location.origin}\nTenant id: ${id}\nPassword: ${password}\n`;

  return (
    <main class="front narrow">
      <Brand />
      <PageHead title="Your account is ready" />
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          attempt.run();
        }}
      >
        <p>Sign in with these two:</p>
        <div class="credentials">
          <label for="new-id">Tenant id</label>
          <div>
            <Given id="new-id" name="loginId" value={id} autocomplete="username" />
            <Copy text={id} what="the tenant id" label="Copy" />
          </div>
          <label for="new-password">Password</label>
          <div>
            <Given
              id="new-password"
              name="password"
              value={password}
              autocomplete="new-password"
              type={isShown ? "text" : "password"}
            />
            <span class="buttons">
              <Reveal what="the password" isShown={isShown} onToggle={() => setShown(!isShown)} />
              <Copy text={password} what="the password" label="Copy" />
              <Download text={kept} file={`postrider-${id}.txt`} what="the id and the password" />
            </span>
          </div>
        </div>
        <p class="notice warn">The password is shown only now. Save it before you leave this page.</p>
        <Refusal of={attempt} />
        <div class="buttons">
          <AttemptButton of={attempt} type="submit">
            I saved it
          </AttemptButton>
        </div>
      </form>
    </main>
  );
}

/** A field that cannot be changed. Not `readonly`: password managers do not save what nobody could have typed. */
function Given({
  value,
  ...given
}: {
  id: string;
  name: string;
  value: string;
  autocomplete: string;
  type?: "text" | "password";
}) {
  // With `h`, because in JSX TypeScript wants a separate case for each input type.
  return h("input", {
    type: "text",
    ...given,
    value,
    spellcheck: false,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
      currentTarget.value = value;
    },
  });
}
