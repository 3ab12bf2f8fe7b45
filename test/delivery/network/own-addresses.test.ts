import { expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { createOwnAddresses } from "../../../src/delivery/network/own-addresses.ts";
import { createManualClock } from "../../support/manual-clock.ts";

test("the machine's addresses are known in their one spelling, those of loopback are left out", () => {
  const { clock } = createManualClock();
  const own = createOwnAddresses({
    clock,
    list: () => ["198.41.5.5", "2A00:1450:0:0::5", "127.0.0.1", "::1", "fe80::1%eth0"],
  });
  expect(["198.41.5.5", "2a00:1450::5"].map(own.has)).toEqual([true, true]);
  expect(["198.41.5.6", "127.0.0.1", "::1", ""].map(own.has)).toEqual([false, false, false, false]);
});

test("they are looked up anew, but not for every connection", () => {
  const { clock, advance } = createManualClock();
  let addresses = ["198.41.5.5"];
  let looked = 0;
  const own = createOwnAddresses({
    clock,
    list() {
      looked += 1;
      return addresses;
    },
  });
  expect(own.has("198.41.5.5")).toBe(true);
  addresses = ["8.8.4.4"];
  advance(2_000);
  expect(own.has("8.8.4.4")).toBe(false);
  expect([looked, own.version()]).toEqual([1, 1]);
  advance(1);
  expect([own.has("8.8.4.4"), own.has("198.41.5.5")]).toEqual([true, false]);
  expect([looked, own.version()]).toEqual([2, 2]);
  advance(2_001);
  expect([own.version(), looked]).toEqual([2, 3]);
});

test("all of the system's interfaces are among them", () => {
  const { clock } = createManualClock();
  const own = createOwnAddresses({ clock });
  const listed = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const outward = listed.filter(({ internal, address }) => !internal && !address.startsWith("fe80:"));
  expect(outward.filter(({ address }) => !own.has(address))).toEqual([]);
});
