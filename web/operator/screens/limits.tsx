import { useState } from "preact/hooks";
import { ApiError } from "../../api/client.ts";
import { Button } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import { Panel } from "../../parts/panel.tsx";
import { ask } from "../api/session.ts";
import type { AccountDetail, LimitName } from "../api/types.ts";

const fields: readonly { readonly name: LimitName; readonly label: string; readonly hint: string }[] = [
  { name: "events_per_month", label: "Events a month", hint: "Leave empty for what its tier includes." },
  { name: "webhooks", label: "Webhooks", hint: "Leave empty for what its tier includes." },
  { name: "storage_bytes", label: "Storage in bytes", hint: "Leave empty for no limit." },
  { name: "retention_days", label: "Events kept for days", hint: "Leave empty for the server's default. 0: for ever." },
  {
    name: "retention_payloads_days",
    label: "Payloads kept for days",
    hint: "Leave empty for the server's default. 0: as long as the events.",
  },
];

/** What applies to this account instead of what its tier includes. */
export function Limits({ of: { tenant_id: id, limits }, onSaved }: { of: AccountDetail; onSaved(): void }) {
  const given = Object.fromEntries(fields.map(({ name }) => [name, limits[name] === null ? "" : String(limits[name])]));
  const [texts, setTexts] = useState<Record<string, string>>(given);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const changed = fields.filter(({ name }) => texts[name]?.trim() !== given[name]);

  async function save(): Promise<void> {
    const numbers = changed.map(({ name }) => [name, numberOf(texts[name] ?? "")]);
    try {
      await ask(`/operator/tenants/${id}/limits`, { method: "PUT", body: Object.fromEntries(numbers) });
      onSaved();
    } catch (error) {
      if (!(error instanceof ApiError) || !error.broken) throw error;
      setRefusal(error);
    }
  }

  return (
    <Panel title="Limits">
      <div class="op-limits">
        {fields.map(({ name, label, hint }) => (
          <Field
            key={name}
            label={label}
            hint={hint}
            value={texts[name] ?? ""}
            wrong={refusal?.broken?.field === name ? refusal.message : null}
            onType={(text) => {
              setTexts({ ...texts, [name]: text });
              setRefusal(null);
            }}
          />
        ))}
      </div>
      <div class="buttons">
        <Button kind="primary" disabled={changed.length === 0} onClick={save}>
          Save the limits
        </Button>
      </div>
    </Panel>
  );
}

/** Anything that is not a number is sent as is: the server says what is wrong with it. */
function numberOf(text: string): number | string | null {
  const trimmed = text.replaceAll(/[\s\u202f]/g, "");
  if (trimmed === "") return null;
  return /^\d+$/.test(trimmed) ? Number(trimmed) : text;
}
