import { useState } from "preact/hooks";
import { isolated } from "../../format/controls.ts";
import { AttemptButton, Refusal, useAttempt } from "../../parts/attempt.tsx";
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
  const attempt = useAttempt(async () => {
    const body = reason.trim() === "" ? {} : { reason };
    await ask(`/operator/tenants/${account.tenant_id}/suspend`, { method: "POST", body });
    onDone("It is suspended.");
  });
  return (
    <Dialog title={`Suspend ${isolated(account.tenant_name)}?`} onClose={onClose}>
      <p>It can send no more events, and what waits is not delivered until you end the suspension. Nothing is lost.</p>
      <Field label="Reason" value={reason} onType={setReason} hint="The account reads it in its activity." />
      <Refusal of={attempt} />
      <div class="buttons">
        <Button onClick={onClose}>Cancel</Button>
        <AttemptButton of={attempt} kind="danger">
          Suspend
        </AttemptButton>
      </div>
    </Dialog>
  );
}

/** @param onReset is called even if the dialog was closed meanwhile: the server tells the new password only once */
export function ResetPassword({ of: account, onClose, onReset }: Asking & { onReset(password: string): void }) {
  const [endsKeys, setEndsKeys] = useState(false);
  const attempt = useAttempt(async () => {
    const body = { end_keys: endsKeys };
    const path = `/operator/tenants/${account.tenant_id}/reset-password`;
    onReset((await ask<{ password: string }>(path, { method: "POST", body })).password);
  });
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
      <Refusal of={attempt} />
      <div class="buttons">
        <Button onClick={onClose}>Cancel</Button>
        <AttemptButton of={attempt} kind="danger">
          Reset the password
        </AttemptButton>
      </div>
    </Dialog>
  );
}

export function DeleteAccount({ of: account, onClose }: Asking) {
  const [typed, setTyped] = useState("");
  const attempt = useAttempt(async () => {
    await ask(`/operator/tenants/${account.tenant_id}`, { method: "DELETE" });
    say(`${isolated(account.tenant_name)} is deleted.`);
    location.hash = "#accounts";
  });
  return (
    <Dialog title={`Delete ${isolated(account.tenant_name)}?`} onClose={onClose}>
      <p>Its events, webhooks and keys are erased for good, and nothing that waits is delivered any more.</p>
      <Field label={`Type ${account.tenant_id} to go on`} value={typed} onType={setTyped} autocomplete="off" />
      <Refusal of={attempt} />
      <div class="buttons">
        <Button onClick={onClose}>Cancel</Button>
        <AttemptButton of={attempt} kind="danger" disabled={typed.trim() !== account.tenant_id}>
          Delete the account
        </AttemptButton>
      </div>
    </Dialog>
  );
}
