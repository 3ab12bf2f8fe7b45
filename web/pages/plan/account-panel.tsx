import { useState } from "preact/hooks";
import { isolated } from "../../format/controls.ts";
import { Button } from "../../parts/button.tsx";
import { Id } from "../../parts/id.tsx";
import { Panel } from "../../parts/panel.tsx";
import { DeleteDialog } from "./delete-dialog.tsx";
import { PasswordDialog } from "./password-dialog.tsx";
import type { PlanView } from "./plan-view.ts";

/** How to sign in, and how to delete the account. */
export function AccountPanel({ view }: { view: PlanView }) {
  const { who } = view;
  const [open, setOpen] = useState<"password" | "delete" | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <Panel title="Account">
        <dl class="facts">
          <dt>Name</dt>
          <dd>{isolated(who.tenant_name)}</dd>
          <dt>Tenant id</dt>
          <dd>
            <Id value={who.tenant_id} what="the tenant id" isWhole />
          </dd>
          <dt>E-mail</dt>
          <dd>{isolated(who.email)}</dd>
          <dt>Sign in with</dt>
          <dd>{who.tier === "free" || who.tier === "enterprise" ? "the tenant id" : "the e-mail or the tenant id"}</dd>
        </dl>
        <div class="buttons account-buttons">
          <Button changes onClick={() => setOpen("password")} aria-haspopup="dialog">
            Change the password …
          </Button>
          <Button changes kind="danger" onClick={() => setOpen("delete")} aria-haspopup="dialog">
            Delete the account …
          </Button>
        </div>
      </Panel>
      {open === "password" && <PasswordDialog loginId={who.tenant_id} onClose={close} />}
      {open === "delete" && <DeleteDialog view={view} onClose={close} />}
    </>
  );
}
