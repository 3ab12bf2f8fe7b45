import type { Tenant } from "../../src/domain/tenant.ts";
import { noEvents, type RegisteredWebhook, type TenantState } from "../../src/domain/tenant-state.ts";
import { newStanding, usualSettings, type WebhookSettings, type WebhookStanding } from "../../src/domain/webhook.ts";

/** A verified free account; a test gives only what matters to it. */
export const tenantState = ({
  tenant,
  ...changes
}: Partial<Omit<TenantState, "tenant">> & { tenant?: Partial<Tenant> } = {}): TenantState => ({
  gone: false,
  webhooks: [],
  counters: noEvents,
  tenant: {
    key: 1,
    id: "t0000000000001",
    name: "Acme",
    email: "ops@acme.example",
    tier: "free",
    enforcedTier: "free",
    passwordHash: "",
    sessionVersion: 1,
    createdAt: 0,
    operatorSuspendedAt: null,
    paymentSuspendedAt: null,
    pastDueAt: null,
    ownEventsPerMonth: null,
    ownWebhooks: null,
    ownRetentionDays: null,
    ownPayloadDays: null,
    ownStorageBytes: null,
    storageFullAt: null,
    ...tenant,
  },
  ...changes,
});

/** A webhook that is registered under this key. */
export const registered = (
  key: number,
  settings: Partial<WebhookSettings & WebhookStanding> = {},
): RegisteredWebhook => ({
  key,
  id: `wh_${key}`,
  url: `https://${key}.example/hook`,
  name: "",
  used: false,
  ...usualSettings,
  ...newStanding,
  ...settings,
});
