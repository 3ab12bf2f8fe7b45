import { expect, test } from "bun:test";
import { changesOf, throttled } from "../../src/domain/change.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { tenantOf } from "../support/billing-factory.ts";
import { registered } from "../support/tenant-state.ts";

type Row = readonly [string, before: Partial<Tenant>, after: Partial<Tenant>, kinds: readonly string[]];

const rows: readonly Row[] = [
  ["the operator suspends it", {}, { operatorSuspendedAt: 5 }, ["account_suspended"]],
  ["the operator suspends it again", { operatorSuspendedAt: 5 }, { operatorSuspendedAt: 6 }, ["account_suspended"]],
  ["the operator resumes it", { operatorSuspendedAt: 5 }, { operatorSuspendedAt: null }, ["account_resumed"]],
  ["its plan is another", {}, { tier: "business", enforcedTier: "business" }, ["plan_changed business"]],
  ["its first plan is in force", { enforcedTier: null }, { enforcedTier: "pro" }, ["plan_changed pro"]],
  ["another plan is asked for, and not in force", {}, { tier: "business" }, ["account_changed"]],
  ["no plan is in force, and then the free one", { enforcedTier: null }, { enforcedTier: "free" }, ["account_changed"]],
  ["its sessions end", {}, { sessionVersion: 2 }, ["sessions_ended"]],
  ["a payment suspends it", {}, { paymentSuspendedAt: 5, pastDueAt: 4 }, ["account_changed"]],
  ["only its e-mail is another", {}, { email: "ada@x.io" }, ["account_changed"]],
  ["nothing is another that is shown", {}, {}, ["account_changed"]],
  [
    "several things change at once",
    { operatorSuspendedAt: 5 },
    { operatorSuspendedAt: null, enforcedTier: "free", sessionVersion: 2 },
    ["account_resumed", "plan_changed free", "sessions_ended"],
  ],
];

test.each(rows)("of an account: %s", (_, before, after, kinds) => {
  const changes = changesOf(tenantOf(before), tenantOf({ ...before, ...after }));
  expect(
    changes.map((change) => (change.kind === "plan_changed" ? `plan_changed ${change.tier}` : change.kind)),
  ).toEqual([...kinds]);
  for (const change of changes) expect(change).toMatchObject({ tenantKey: 1, tenantId: "t1" });
});

test.each([
  [true, false, true],
  [true, true, false],
  [false, true, false],
  [false, false, false],
])("a webhook that was paused (%p) and is now (%p) resumes: %p", (was, is, resumes) => {
  const [before, after] = [registered(1, { paused: was }), registered(1, { paused: is, rateLimit: 5 })];
  expect(throttled([{ before, after }]).webhooks).toEqual([
    { webhookKey: 1, paused: is, resumes, rateLimit: 5, maxConcurrency: null },
  ]);
});
