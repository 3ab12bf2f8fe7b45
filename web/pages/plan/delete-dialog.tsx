import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { call } from "../../api/client.ts";
import type { EventPage } from "../../api/types.ts";
import { isolated } from "../../format/controls.ts";
import { count, naira } from "../../format/number.ts";
import { Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { leaveEverywhere } from "../../session/tabs.ts";
import { useLoaded } from "../../stream/load.ts";
import type { PlanView } from "./plan-view.ts";

/** Deletes the account after its name has been typed: there is no way back. */
export function DeleteDialog({ view: { who, billing, webhooks }, onClose }: { view: PlanView; onClose(): void }) {
  const { route } = useLocation();
  const [typed, setTyped] = useState("");
  const records = useLoaded("records", async (signal) => {
    const query = { size: 1, payload: false };
    return (await call<EventPage>("/v1/events", { query, signal })).total;
  });
  const attempt = useAttempt(async () => {
    await call("/v1/tenants", { method: "DELETE" });
    leaveEverywhere("deleted");
    route("/", true);
  });
  const isMeant = [who.tenant_name, who.tenant_id].includes(typed.trim());
  const { amount_kobo: amount, credit_kobo: credit } = billing?.current_month ?? { amount_kobo: 0, credit_kobo: 0 };

  return (
    <Dialog title="Delete the account" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (isMeant) attempt.run();
        }}
      >
        <p>This deletes, at once and for good:</p>
        <ul class="losses">
          <li>
            {records.data === undefined || records.data === 0
              ? "all events and their history"
              : `all events and their history: ${records.data === 1 ? "1 delivery" : `${count(records.data)} deliveries`}`}
          </li>
          <li>deliveries that are still waiting</li>
          <li>
            {webhooks === 1 ? "the webhook" : webhooks === 0 ? "the inbox" : `${webhooks} webhooks`}, the keys and the
            sign-in
          </li>
          {billing?.card && <li>the plan and the saved card</li>}
        </ul>
        {billing?.card && amount > credit && (
          <p>The days used so far are charged one last time: {naira(amount - credit)}.</p>
        )}
        <Field
          label="To confirm, type the account name or the tenant id"
          hint={`${isolated(who.tenant_name)}, or ${who.tenant_id}`}
          onType={setTyped}
          autocomplete="off"
        />
        <Refusal of={attempt} />
        <div class="buttons">
          <Button onClick={onClose}>Keep the account</Button>
          <Button kind="danger" type="submit" busy={attempt.isBusy} disabled={!isMeant}>
            Delete the account
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
