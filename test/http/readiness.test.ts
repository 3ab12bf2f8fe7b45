import { expect, test } from "bun:test";
import { unavailable } from "../../src/domain/errors.ts";
import { createReadiness } from "../../src/http/readiness.ts";
import { alone } from "../../src/store/node-lease.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const storeWith = (probe: () => Promise<void>, lagMs = 0) => ({ probe, oldestWaitingWriteMs: () => lagMs });

test("however many ask, the store is asked once a second", async () => {
  const clock = createFakeClock();
  let probes = 0;
  const store = storeWith(async () => void probes++);
  const readiness = createReadiness({ store, lease: alone, hasRoom: () => true, clock });
  expect(await Promise.all(Array.from({ length: 50 }, readiness))).toEqual(Array(50).fill(null));
  await clock.advance(999);
  await readiness();
  expect(probes).toBe(1);
  await clock.advance(1);
  await readiness();
  expect(probes).toBe(2);
});

test("a write that is never done is answered after a second and a half", async () => {
  const clock = createFakeClock();
  const readiness = createReadiness({
    store: storeWith(() => new Promise(() => {})),
    lease: alone,
    hasRoom: () => true,
    clock,
  });
  const answer = readiness();
  await clock.advance(1500);
  expect(await answer).toMatchObject({ kind: "unavailable", code: "storage_unavailable" });
});

test.each([
  ["the disk is below its floor", storeWith(async () => {}), false, "storage_full"],
  ["a write is stuck", storeWith(async () => {}, 5001), true, "storage_unavailable"],
  ["the store says so", storeWith(() => Promise.reject(unavailable("No.", "storage_full"))), true, "storage_full"],
  ["the store has a defect", storeWith(() => Promise.reject(new Error("no"))), true, "storage_unavailable"],
] as const)("it is not ready when %s", async (_name, store, room, code) => {
  const readiness = createReadiness({ store, lease: alone, hasRoom: () => room, clock: createFakeClock() });
  expect(await readiness()).toMatchObject({ kind: "unavailable", code });
});

test("it is not ready while it may not start attempts, and is again when it may", async () => {
  let may = false;
  const lease = { mayStart: () => may };
  const readiness = createReadiness({
    store: storeWith(async () => {}),
    lease,
    hasRoom: () => true,
    clock: createFakeClock(),
  });
  expect(await readiness()).toMatchObject({ kind: "unavailable", code: "storage_unavailable" });
  may = true;
  expect(await readiness()).toBeNull();
});
