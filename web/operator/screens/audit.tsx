import { useState } from "preact/hooks";
import { Choice, Field } from "../../parts/field.tsx";
import { PageHead } from "../../parts/page.tsx";
import { Panel } from "../../parts/panel.tsx";
import { actionOptions } from "./audit-actions.ts";
import { AuditList } from "./audit-list.tsx";

export function AuditScreen() {
  const [action, setAction] = useState("");
  const [tenant, setTenant] = useState("");
  const id = tenant.trim();
  return (
    <>
      <PageHead title="Audit" />
      <div class="stack">
        <div class="op-limits">
          <Choice label="What" options={actionOptions} value={action} onChoose={setAction} />
          <Field
            label="Account"
            value={tenant}
            onType={setTenant}
            placeholder="Id of an account, also of a deleted one"
          />
        </div>
        <Panel title="Who did what" isFlush>
          <AuditList key={`${action} ${id}`} action={action || undefined} tenant={id || undefined} />
        </Panel>
      </div>
    </>
  );
}
