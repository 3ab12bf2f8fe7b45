import { statusOf, type Tenant } from "../domain/tenant.ts";

/** The part of the stream hub that accounts use. */
export interface AccountHub {
  publish(tenantId: string, kind: "account.changed", data: () => Record<string, unknown>): void;
}

export type AccountChange =
  | "tier"
  | "limits"
  | "standing"
  | "billing"
  | "login"
  | "webhooks"
  | "inbox"
  | "api_keys"
  | "signing_keys"
  | "signing_secret";

/** Tells the account's streams what has changed, so that a page knows what to read again. It reveals no secret. */
export function announceChange(hub: AccountHub, tenant: Tenant, changed: AccountChange): void {
  hub.publish(tenant.id, "account.changed", () => ({
    tenant_id: tenant.id,
    tier: tenant.tier,
    status: statusOf(tenant),
    changed,
  }));
}
