import { useState } from "preact/hooks";
import { isolated } from "../../format/controls.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { say } from "../../parts/said.tsx";
import { ask } from "../api/session.ts";
import type { Account } from "../api/types.ts";

interface Asking {
  of: Account;
  onClose(): void;
}

export function Suspend({ of: account, onClose, onDone }: Asking & { onDone(text: string): void }) {
  const [reason, setReason] = useState("");
  const suspend = async () => {
    const body = reason.trim() === "" ? {} : { reason };
    await ask(`/operator/tenants/${account.tenant_id}/suspend`, { method: "POST", body });
    onDone("It is suspended.");
  };
  return (
    <Dialog title={`Suspend ${isolated(account.tenant_name)}?`} onClose={onClose}>
      <p>It can send no more events, and what waits is not delivered until you end the suspension. Nothing is lost.</p>
      <Field label="Reason" value={reason} onType={setReason} hint="The account reads it in its activity." />
      <div class="buttons">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" onClick={suspend}>
          Suspend
        </Button>
      </div>
    </Dialog>
  );
}

/** @param onReset is called even if the dialog was closed meanwhile: the server tells the new password only once */
export function ResetPassword({ of: account, onClose, onReset }: Asking & { onReset(password: string): void }) {
  const [endsKeys, setEndsKeys] = useState(false);
  const reset = async () => {
    const body = { end_keys: endsKeys };
    const path = `/operator/tenants/${account.tenant_id}/reset-password`;
    onReset((await ask<{ password: string }>(path, { method: "POST", body })).password);
  };
  return (
    <Dialog title={`Reset the password of ${isolated(account.tenant_name)}?`} onClose={onClose}>
      <p>Its password stops working and all of its sessions end. You get a new password to hand over.</p>
      <label class="check">
        <input
          type="checkbox"
          checked={endsKeys}
          onChange={({ currentTarget }) => setEndsKeys(currentTarget.checked)}
        />{" "}
        Replace its API keys and its signing secret, too: somebody else may have read them
      </label>
      <div class="buttons">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" onClick={reset}>
          Reset the password
        </Button>
      </div>
    </Dialog>
  );
}

export function DeleteAccount({ of: account, onClose }: Asking) {
  const [typed, setTyped] = useState("");
  const remove = async () => {
    await ask(`/operator/tenants/${account.tenant_id}`, { method: "DELETE" });
    say(`${isolated(account.tenant_name)} is deleted.`);
    location.hash = "#accounts";
  };
  return (
    <Dialog title={`Delete ${isolated(account.tenant_name)}?`} onClose={onClose}>
      <p>Its events, webhooks and keys are erased for good, and nothing that waits is delivered any more.</p>
      <Field label={`Type ${account.tenant_id} to go on`} value={typed} onType={setTyped} autocomplete="off" />
      <div class="buttons">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" disabled={typed.trim() !== account.tenant_id} onClick={remove}>
          Delete the account
        </Button>
      </div>
    </Dialog>
  );
}
