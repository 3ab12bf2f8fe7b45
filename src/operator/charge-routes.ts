import * as v from "valibot";
import { type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import { formatIso, formatIsoOrNull } from "../lib/iso-time.ts";
import type { ListedCharge } from "../store/billing.ts";
import type { Store } from "../store/store.ts";

const mostCharges = 200;

const charge = v.object({
  tenant_id: v.nullable(v.string()),
  tenant_name: v.nullable(v.string()),
  reference: v.string(),
  kind: v.string(),
  state: v.string(),
  amount_kobo: v.number(),
  created_at: v.string(),
  settled_at: v.nullable(v.string()),
  reason: v.nullable(v.string()),
  refund: v.nullable(v.string()),
});

const example = {
  tenant_id: "t5k2m8q0w3r7xa",
  tenant_name: "Ada's shop",
  reference: "pr-2c9d4e",
  kind: "subscription",
  state: "succeeded",
  amount_kobo: 1_500_000,
  created_at: "2026-03-31T11:00:00.000Z",
  settled_at: "2026-03-31T11:00:02.000Z",
  reason: null,
  refund: null,
};

const toRecord = (listed: ListedCharge) => ({
  tenant_id: listed.tenantId,
  tenant_name: listed.tenantName,
  reference: listed.reference,
  kind: listed.kind,
  state: listed.state,
  amount_kobo: listed.amountKobo,
  created_at: formatIso(listed.createdAt),
  settled_at: formatIsoOrNull(listed.settledAt),
  reason: listed.reason,
  refund: listed.refund,
});

/** Payments of all accounts, for the operator's page. There are none where nothing is sold. */
export const chargeRoutes = (store: Pick<Store, "latestCharges">): ErasedEndpoint[] => [
  endpoint(
    {
      method: "GET",
      path: "/operator/charges",
      tag: "Operator",
      summary: "List the latest charges of all accounts",
      description: `The newest ${mostCharges}. Of a deleted account amount, time and reference are left.`,
      access: "operator",
      responses: {
        200: {
          description: "The charges, newest first.",
          schema: v.object({ charges: v.array(charge) }),
          example: { charges: [example] },
        },
      },
    },
    async () => ok({ charges: (await store.latestCharges(mostCharges)).map(toRecord) }),
  ),
];
