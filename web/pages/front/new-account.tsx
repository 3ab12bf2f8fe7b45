import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { CreatedTenant } from "../../api/types.ts";
import { Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Brand } from "../../parts/brand.tsx";
import { Button } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { PageHead } from "../../parts/page.tsx";
import { signIn } from "../../session/sign-in.ts";

/** The only time that the password of a new free account is shown. Nothing but this view keeps it. */
export function NewAccount({ account: { tenant_id: id, password = "" } }: { account: CreatedTenant }) {
  const { route } = useLocation();
  const attempt = useAttempt(() => signIn(id, password, () => route("/welcome", true)));

  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, []);

  return (
    <main class="front narrow">
      <Brand />
      <PageHead title="Your account is ready" />
      <div class="form">
        <p>Sign in with these two:</p>
        <dl class="credentials">
          <dt>Tenant id</dt>
          <dd>
            <code>{id}</code>
            <Copy text={id} what="the tenant id" label="Copy" />
          </dd>
          <dt>Password</dt>
          <dd>
            <code>{password}</code>
            <Copy text={password} what="the password" label="Copy" />
          </dd>
        </dl>
        <p class="notice warn">
          The password is shown only now. If you leave this page without saving it, nobody can show it again, and only
          the operator of this server can reset it.
        </p>
        <Refusal of={attempt} />
        <div class="buttons">
          <Button kind="primary" onClick={attempt.run} busy={attempt.isBusy}>
            I saved it
          </Button>
        </div>
      </div>
    </main>
  );
}
