import { expect, test } from "bun:test";
import type { Change } from "../src/domain/change.ts";
import { createChangeHeeder } from "../src/heed-changes.ts";

/** Notes what is done, as "part.act argument". */
function setUp() {
  const done: string[] = [];
  const note =
    (act: string) =>
    (...args: unknown[]) =>
      void done.push([act, ...args].join(" "));
  const heed = createChangeHeeder({
    deliveries: {
      removeWebhooks: note("deliveries.removeWebhooks"),
      disableWebhook: note("deliveries.disableWebhook"),
      enableWebhook: ({ webhookKey }) => note("deliveries.enableWebhook")(webhookKey),
      endOrder: note("deliveries.endOrder"),
      cancelReplay: note("deliveries.cancelReplay"),
      stopTenant: note("deliveries.stopTenant"),
      pauseTenant: note("deliveries.pauseTenant"),
      resumeTenant: note("deliveries.resumeTenant"),
      adoptPlan: note("deliveries.adoptPlan"),
      throttle: (key, webhooks) => note("deliveries.throttle")(key, JSON.stringify(webhooks)),
    },
    hub: { closeTenant: note("hub.closeTenant"), closeSession: note("hub.closeSession") },
    answers: { closeTenant: note("answers.closeTenant") },
    testDelivery: { stopTenant: note("testDelivery.stopTenant") },
    signers: { forget: note("signers.forget") },
    failingWebhooks: {
      stands: ({ webhookKey }, { as, at }) => note("failing.stands")(webhookKey, as, at),
      forget: note("failing.forget"),
      forgetTenant: note("failing.forgetTenant"),
    },
    masterKey: { adopt: note("masterKey.adopt") },
  });
  return { heed, done };
}

const slow = { webhookKey: 4, paused: false, resumes: false, rateLimit: 5, maxConcurrency: 1 };
const tenant = { tenantKey: 7, tenantId: "t7" };

const rows: readonly [Change, readonly string[]][] = [
  [{ kind: "master_key_changed" }, ["masterKey.adopt"]],
  [
    { ...tenant, kind: "account_deleted" },
    [
      "deliveries.stopTenant 7",
      "testDelivery.stopTenant 7",
      "hub.closeTenant t7",
      "answers.closeTenant t7",
      "signers.forget 7",
      "failing.forgetTenant 7",
    ],
  ],
  [{ ...tenant, kind: "account_suspended" }, ["deliveries.pauseTenant 7"]],
  [{ ...tenant, kind: "account_resumed" }, ["deliveries.resumeTenant 7"]],
  [{ ...tenant, kind: "plan_changed", tier: "pro" }, ["deliveries.adoptPlan 7 pro"]],
  [{ ...tenant, kind: "sessions_ended" }, ["hub.closeTenant t7"]],
  [{ kind: "session_ended", sessionId: "s1" }, ["hub.closeSession s1"]],
  [{ ...tenant, kind: "order_ended" }, ["deliveries.endOrder"]],
  [
    { ...tenant, kind: "webhooks_removed", webhookKeys: [1, 2] },
    ["deliveries.removeWebhooks 1,2", "failing.forget 1,2"],
  ],
  [{ ...tenant, kind: "webhook_stands", webhookKey: 5, as: "failing", at: 9 }, ["failing.stands 5 failing 9"]],
  [
    { ...tenant, kind: "webhook_stands", webhookKey: 5, as: "disabled", at: 9 },
    ["failing.stands 5 disabled 9", "deliveries.disableWebhook 5"],
  ],
  [
    { ...tenant, kind: "webhook_stands", webhookKey: 5, as: "well", at: 9 },
    ["failing.stands 5 well 9", "deliveries.enableWebhook 5"],
  ],
  [{ ...tenant, kind: "webhooks_throttled", webhooks: [slow] }, [`deliveries.throttle 7 [${JSON.stringify(slow)}]`]],
  [{ ...tenant, kind: "replay_cancelled", replayKey: 3 }, ["deliveries.cancelReplay 7 3"]],
  [{ ...tenant, kind: "signing_changed" }, ["signers.forget 7"]],
  [{ ...tenant, kind: "api_keys_changed" }, []],
  [{ ...tenant, kind: "account_changed" }, []],
];

test.each(rows)("what a program does about %j", (change, expected) => {
  const { heed, done } = setUp();
  heed(change);
  expect(done).toEqual([...expected]);
});
