import { expect, test } from "bun:test";
import { orderedQuotaOf, quotaOf, toOwnLimits, webhooksAllowed } from "../../src/domain/limits.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { tenantState } from "../support/tenant-state.ts";

const tenantOf = (given: Partial<Tenant>) => tenantState({ tenant: given }).tenant;
const waiting = { tier: "business", enforcedTier: "pro" } as const;
const unverified = { tier: "business", enforcedTier: null } as const;

test.each([
  ["of a plan", {}, 10_000, 10_000, 1],
  ["of the plan in force while another is ordered", waiting, 5_000_000, 25_000_000, 1],
  ["webhooks of the plan that was ordered first", unverified, 10_000, 25_000_000, 2],
  ["a quota of its own", { ownEventsPerMonth: 7 }, 7, 7, 1],
  ["a quota of its own, whatever is ordered", { ...waiting, ownEventsPerMonth: 7 }, 7, 7, 1],
  ["no events at all", { ownEventsPerMonth: 0 }, 0, 0, 1],
  ["webhooks of its own", { ownWebhooks: 9 }, 10_000, 10_000, 9],
] as const)("an account may use: %s", (_, given, quota, ordered, webhooks) => {
  const tenant = tenantOf(given);
  expect([quotaOf(tenant), orderedQuotaOf(tenant), webhooksAllowed(tenant)]).toEqual([quota, ordered, webhooks]);
});

const own = {
  ...{ ownEventsPerMonth: 7, ownWebhooks: null },
  ...{ ownRetentionDays: null, ownPayloadDays: null, ownStorageBytes: null },
};

test.each([
  ["a retention of its own", { ownRetentionDays: 0, ownPayloadDays: 7 }, { ownRetentionDays: 0, ownPayloadDays: 7 }],
  ["whether more storage is enough is open", { ownStorageBytes: 9 }, { ownStorageBytes: 9, storageFullAt: null }],
  ["what is not named stays", { ownWebhooks: 3 }, { ownWebhooks: 3 }],
  ["null is the plan's again", { ownEventsPerMonth: null }, { ownEventsPerMonth: null }],
  ["what it is already is no change", { ownEventsPerMonth: 7, ownWebhooks: null }, {}],
])("the operator sets limits: %s", (_, wanted, change) => {
  expect(toOwnLimits(own, wanted)).toEqual(change);
});
