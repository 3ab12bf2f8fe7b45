import { expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { createKeyCache } from "../../src/store/key-cache.ts";
import { tenantOf } from "../support/billing-factory.ts";

const hash = new Uint8Array(32).fill(1);

/** A backend of one account, whose reads end when they are told to. */
function setUp() {
  let tenant: Tenant = tenantOf({ tier: "free" });
  let reads = 0;
  let gate: Promise<void> = Promise.resolve();
  const cache = createKeyCache(async () => {
    reads += 1;
    const found = { apiKeyId: "key_1", tenant, expiresAt: null };
    await gate;
    return found;
  });
  return {
    find: async () => (await cache.findApiKey(hash))?.tenant,
    reads: () => reads,
    /** The account becomes another one, and that is told. */
    become(given: Partial<Tenant>, kind: string) {
      tenant = { ...tenant, ...given };
      cache.heed({ kind, tenantKey: tenant.key, tenantId: tenant.id } as Change);
    },
    /** Reads that begin from now on do not end before the function that is returned is called. */
    holdReads() {
      const held = Promise.withResolvers<void>();
      gate = held.promise;
      return held.resolve;
    },
  };
}

test.each(["webhooks_removed", "signing_changed", "session_ended"])(
  "a key is read once, also after a change that leaves it as it is: %s",
  async (kind) => {
    const { become, find, reads } = setUp();
    await find();
    become({}, kind);
    expect(await find()).toMatchObject({ tier: "free" });
    expect(reads()).toBe(1);
  },
);

test.each([
  "account_deleted",
  "account_suspended",
  "account_resumed",
  "plan_changed",
  "sessions_ended",
  "account_changed",
  "api_keys_changed",
  "what nobody has thought of",
])("nothing is kept beyond a change: %s", async (kind) => {
  const { become, find } = setUp();
  await find();
  become({ tier: "pro" }, kind);
  expect(await find()).toMatchObject({ tier: "pro" });
});

test("a read that is held open while a change passes does not bring the old account back", async () => {
  const { become, find, holdReads } = setUp();
  const endReads = holdReads();
  const overtaken = find();
  become({ tier: "pro" }, "plan_changed");
  endReads();
  expect(await overtaken).toMatchObject({ tier: "free" });
  expect(await find()).toMatchObject({ tier: "pro" });
});
