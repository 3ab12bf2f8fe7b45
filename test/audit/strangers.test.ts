import { expect, test } from "bun:test";
import { createStrangers } from "../../src/audit/strangers.ts";
import { unavailable } from "../../src/domain/errors.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp(fails = false) {
  const clock = createFakeClock();
  const noted: unknown[] = [];
  const store = {
    async noteAct(tenantId: string | null, { action, address }: { action: string; address: string | null }, times = 1) {
      noted.push([tenantId, action, address, times]);
      if (fails) throw unavailable("The disk is full.", "storage_full", 5);
    },
  };
  return { clock, noted, strangers: createStrangers({ store, clock }) };
}

test("guesses of two seconds are one write for each account and address", async () => {
  const { clock, noted, strangers } = setUp();
  for (const address of ["192.0.2.1", "192.0.2.1", "192.0.2.2"]) strangers.note("login.failed", "t1", address);
  strangers.note("operator.refused", null, "192.0.2.1");
  expect(noted).toEqual([]);
  clock.advance(2_000);
  await strangers.flush();
  expect(noted).toEqual([
    ["t1", "login.failed", "192.0.2.1", 2],
    ["t1", "login.failed", "192.0.2.2", 1],
    [null, "operator.refused", "192.0.2.1", 1],
  ]);
  strangers.note("login.failed", "t1", "192.0.2.1");
  await strangers.flush();
  expect(noted).toHaveLength(4);
});

test("addresses beyond a thousand are counted together, and a store that fails loses them", async () => {
  const { noted, strangers } = setUp(true);
  for (let n = 0; n < 1_010; n++) strangers.note("login.failed", "t1", `2001:db8::${n}`);
  await strangers.flush();
  expect(noted).toHaveLength(1_001);
  expect(noted.at(-1)).toEqual(["t1", "login.failed", null, 10]);
  await strangers.flush();
  expect(noted).toHaveLength(1_001);
});
