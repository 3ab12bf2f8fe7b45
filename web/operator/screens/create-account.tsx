import { useRef, useState } from "preact/hooks";
import { ApiError } from "../../api/client.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Choice, Field } from "../../parts/field.tsx";
import { readForm } from "../../parts/form.ts";
import { ask } from "../api/session.ts";
import { tiers } from "./tiers.ts";

export interface Created {
  readonly tenant_id: string;
  readonly name: string;
  readonly password: string;
}

/** @param onCreated is called even if the dialog was closed meanwhile: the server tells the password only once */
export function CreateAccount({ onClose, onCreated }: { onClose(): void; onCreated(account: Created): void }) {
  const form = useRef<HTMLFormElement>(null);
  const [tier, setTier] = useState("free");
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);

  async function create(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    const { name = "", email = "" } = readForm(form.current);
    try {
      const body = { tier, ...(name && { name }), ...(email && { email }) };
      onCreated(await ask<Created>("/operator/tenants", { method: "POST", body }));
    } catch (error) {
      setRefusal(error instanceof ApiError ? error : new ApiError(String(error), 0, "", null));
    } finally {
      setBusy(false);
    }
  }

  const wrong = (field: string) => (refusal?.broken?.field === field ? refusal.message : null);
  return (
    <Dialog title="Create an account" onClose={onClose}>
      <form ref={form} onSubmit={(event) => void create(event)} noValidate>
        <Field label="Name" name="name" wrong={wrong("name")} hint="Leave empty to generate one." />
        <Field
          label="E-mail address"
          name="email"
          type="email"
          wrong={wrong("email")}
          hint="Also the login on paid tiers."
        />
        <Choice label="Tier" options={tiers} value={tier} onChoose={setTier} />
        {refusal && !refusal.broken && (
          <p class="notice bad" role="alert">
            {refusal.message}
          </p>
        )}
        <div class="buttons">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={isBusy}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
