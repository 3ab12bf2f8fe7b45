import { call } from "../../api/client.ts";
import type { About, Account, AuditPage, Billing, PaymentMethod, Webhook } from "../../api/types.ts";
import { meetServer } from "../../session/server.ts";

/** Everything the page shows, read together so that it is consistent. */
export interface PlanView {
  readonly who: Account;
  /** Null where payments are off. */
  readonly billing: Billing | null;
  readonly webhooks: number;
  readonly isSuspendedByOperator: boolean;
  /** Why the operator has suspended the account; null: they have not, or gave no reason. */
  readonly suspendedFor: string | null;
}

export type Plan = NonNullable<About["plans"]>[number];

export async function readPlan(signal: AbortSignal): Promise<PlanView> {
  const { payments } = await meetServer();
  const [who, billing, webhooks] = await Promise.all([
    call<Account>("/v1/tenants/me", { signal }),
    payments === "off" ? null : call<Billing>("/v1/tenants/billing", { signal }),
    call<Webhook[]>("/v1/tenants/webhooks", { signal }),
  ]);
  // A server of the release before, next to this one on the same database, does not say.
  const isSuspendedByOperator = who.suspended_by?.includes("operator") ?? false;
  const suspendedFor = isSuspendedByOperator ? await readReason(signal) : null;
  return { who, billing, webhooks: webhooks.length, isSuspendedByOperator, suspendedFor };
}

/** The operator's, which is in the audit. */
async function readReason(signal: AbortSignal): Promise<string | null> {
  const { entries } = await call<AuditPage>("/v1/audit", { query: { action: "account.suspended", size: 1 }, signal });
  const reason = entries[0]?.detail.reason;
  return typeof reason === "string" ? reason : null;
}

/** The plan whose limits apply while another one waits for its card; null before the first verification. */
export const enforcedPlan = (plans: readonly Plan[], { enforced_tier: enforced }: Account): Plan | null =>
  plans.find(({ tier }) => tier === enforced) ?? null;

/** Goes to the card verification page in this tab, so that the session is still here on return. */
export async function openCardPage(): Promise<void> {
  const { payment_url: url } = await call<PaymentMethod>("/v1/tenants/payment-method", { method: "POST" });
  location.assign(url);
}
