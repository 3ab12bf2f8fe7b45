import { describe, expect, test } from "bun:test";
import { byAccount } from "../../src/domain/audit.ts";
import type { Replay } from "../../src/domain/replay.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { createReplays } from "../../src/replays/replay.ts";
import { dueDelivery } from "../support/due-delivery.ts";
import { registered } from "../support/tenant-state.ts";

/** Where nobody looks from where. */
const origin = byAccount("192.0.2.1");

const tenant: Tenant = {
  key: 1,
  id: "t1",
  name: "Test",
  email: "test@example.com",
  tier: "free",
  enforcedTier: "free",
  passwordHash: "hash",
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
};

const replay: Replay = {
  id: "rpl_1",
  kind: "all",
  replayGroupId: "label",
  status: "waiting",
  selected: 1,
  queued: 0,
  delivered: 0,
  failed: 0,
  superseded: 0,
  skipped: 0,
  returned: 0,
  payloadsErased: 0,
  createdAt: 0,
  completedAt: null,
  filter: null,
};

/** Replays over a store that takes everything; what they set in motion is noted. */
function setUp() {
  const moved: string[] = [];
  const replays = createReplays({
    store: {
      eventOwner: async () => tenant.key,
      replayEvent: async () => ({
        replay,
        webhooks: [{ tenantKey: 1, webhookKey: 7 }],
        overtaken: [dueDelivery({ deliveryKey: 3 })],
        eventIds: ["evt_1"],
      }),
      startReplay: async () => replay,
      cancelReplay: async () => replay,
      previewReplay: async () => ({ selected: 1, payloadsErased: 0 }),
      webhooks: async () => [registered(7)],
    },
    deliveries: {
      wake: (webhooks) => void moved.push(`deliveries ${webhooks.map(({ webhookKey }) => webhookKey)}`),
      overtake: (deliveries) => void moved.push(`overtaken ${deliveries.map(({ deliveryKey }) => deliveryKey)}`),
    },
    hub: { publish: (_tenantId, kind) => void moved.push(kind) },
    replayer: { wake: () => void moved.push("replayer") },
    clock: { now: () => 0 },
    bulkReplaysPerDay: null,
  });
  return { replays, moved };
}

describe("whoever may have to go on is woken", () => {
  test("by a bulk replay, the replayer", async () => {
    const { replays, moved } = setUp();
    await replays.startBulk(tenant, { kind: "all" }, "label", origin);
    expect(moved).toEqual(["replay.progressed", "replayer"]);
  });

  test("by a single replay, the webhooks, after what it has overtaken, and the replayer: a bulk replay may have been completed by it", async () => {
    const { replays, moved } = setUp();
    await replays.replayEvent(tenant, { eventId: "evt_1", label: "label" }, origin);
    expect(moved).toEqual(["overtaken 3", "deliveries 7", "replay.progressed", "replayer"]);
  });

  test("by a cancellation, the replayer: it may be the next one's turn", async () => {
    const { replays, moved } = setUp();
    await replays.cancel(tenant, replay.id, origin);
    expect(moved).toEqual(["replay.progressed", "replayer"]);
  });
});
