import { expect, test } from "bun:test";
import { sqliteBackend } from "../../support/sqlite-backend.ts";
import { createWorld } from "../../support/store-factory.ts";

test("space is given back step by step", async () => {
  const world = await createWorld(sqliteBackend);
  const tenant = await world.tenant();
  const payloads = Array.from({ length: 100 }, () => new Uint8Array(10_000).fill(97));
  await world.accept(tenant, { payloads });
  await world.store.deleteTenant(tenant.key, 1);
  while (await world.store.eraseDeleted(1_000));
  expect(await world.store.reclaim(40_000)).toBe(true);
  while (await world.store.reclaim(400_000));
  expect(await world.store.reclaim(40_000)).toBe(false);
  await world.end();
});
