import { showControls } from "../../format/controls.ts";
import { naira } from "../../format/number.ts";
import { Icon } from "../../parts/icon.tsx";
import { PageHead } from "../../parts/page.tsx";
import { Panel } from "../../parts/panel.tsx";
import { Empty, Shown } from "../../parts/states.tsx";
import { Time } from "../../parts/time.tsx";
import { useLoaded } from "../../stream/load.ts";
import { ask } from "../api/session.ts";
import type { Charge } from "../api/types.ts";
import { Table } from "./table.tsx";

const tones: Readonly<Record<string, "delivered" | "failed" | "waiting">> = {
  succeeded: "delivered",
  failed: "failed",
};

/** What was charged, across all accounts. */
export function PaymentsScreen() {
  const loaded = useLoaded("charges", (signal) => ask<{ charges: Charge[] }>("/operator/charges", { signal }));
  return (
    <>
      <PageHead title="Payments" />
      <Panel title="Latest charges" isFlush>
        <Shown
          of={loaded}
          isEmpty={({ charges }) => charges.length === 0}
          empty={<Empty sentence="Nothing has been charged yet." />}
        >
          {({ charges }) => (
            <Table columns={["Account", "For", "Amount", "State", "When", "Reference"]}>
              {charges.map((charge) => (
                <Row key={charge.reference} of={charge} />
              ))}
            </Table>
          )}
        </Shown>
      </Panel>
    </>
  );
}

function Row({ of: charge }: { of: Charge }) {
  const { tenant_id, tenant_name, state, refund, reason } = charge;
  const tone = tones[state] ?? "waiting";
  return (
    <tr>
      <td>
        {tenant_id === null ? (
          <span class="soft">deleted</span>
        ) : (
          <a href={`#accounts/${tenant_id}`}>
            <bdi class="op-name">{showControls(tenant_name ?? "")}</bdi>
          </a>
        )}
      </td>
      <td data-name="For">{charge.kind}</td>
      <td data-name="Amount">{naira(charge.amount_kobo)}</td>
      <td data-name="State">
        <span class={`state ${tone}`}>
          <Icon name={tone === "delivered" ? "check" : tone === "failed" ? "cross" : "wait"} />
          {state}
        </span>{" "}
        {refund !== null && <span class="badge">refund {refund}</span>}{" "}
        {reason !== null && <bdi class="soft">{reason}</bdi>}
      </td>
      <td data-name="When">
        <Time at={charge.settled_at ?? charge.created_at} />
      </td>
      <td data-name="Reference">
        <span class="mono">{charge.reference}</span>
      </td>
    </tr>
  );
}
