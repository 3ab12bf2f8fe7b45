import { expect, test } from "bun:test";
import type { Tenant } from "../../src/domain/tenant.ts";
import { type AccountVerbs, withKeyCache } from "../../src/store/key-cache.ts";
import { tenantOf } from "../support/billing-factory.ts";

const hash = new Uint8Array(32).fill(1);

/** A backend of one account, whose reads end when they are told to. */
function setUp() {
  let tenant: Tenant = tenantOf({ tier: "free" });
  let reads = 0;
  let gate: Promise<void> = Promise.resolve();
  const verbs = {
    async findApiKey() {
      reads += 1;
      const found = { apiKeyId: "key_1", tenant, expiresAt: null };
      await gate;
      return found;
    },
    async setTier(_: number, tier: Tenant["tier"]) {
      tenant = { ...tenant, tier };
      return tenant;
    },
    async setPassword() {
      tenant = { ...tenant, sessionVersion: tenant.sessionVersion + 1 };
      throw new Error("nobody knows what became of it");
    },
    markSent: async () => true,
  };
  const cached = withKeyCache(verbs as unknown as AccountVerbs);
  return {
    cached,
    find: async () => (await cached.findApiKey(hash))?.tenant,
    reads: () => reads,
    /** Reads that begin from now on do not end before the function that is returned is called. */
    holdReads() {
      const held = Promise.withResolvers<void>();
      gate = held.promise;
      return held.resolve;
    },
  };
}

test("a key is read once, whatever is done that leaves it as it is", async () => {
  const { cached, find, reads } = setUp();
  await find();
  await cached.markSent("reference", { lookUpAt: 1, resendAt: 1 }, 1);
  expect(await find()).toMatchObject({ tier: "free" });
  expect(reads()).toBe(1);
});

test("a change is seen by whoever asks once it is answered", async () => {
  const { cached, find } = setUp();
  await find();
  await cached.setTier(1, "pro");
  expect(await find()).toMatchObject({ tier: "pro" });
});

test("a read that is held open while a change passes does not bring the old account back", async () => {
  const { cached, find, holdReads } = setUp();
  const endReads = holdReads();
  const overtaken = find();
  await cached.setTier(1, "pro");
  endReads();
  expect(await overtaken).toMatchObject({ tier: "free" });
  expect(await find()).toMatchObject({ tier: "pro" });
});

test("nothing is kept beyond a change that failed: it may have happened", async () => {
  const { cached, find } = setUp();
  const { sessionVersion } = (await find()) ?? { sessionVersion: 0 };
  await cached.setPassword(1, "new").catch(() => {});
  expect(await find()).toMatchObject({ sessionVersion: sessionVersion + 1 });
});
