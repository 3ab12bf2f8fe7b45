import { expect, test } from "bun:test";
import { createStorageBytes } from "../../src/accounts/storage-bytes.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp(tookMs = 0) {
  const clock = createFakeClock();
  let measured = 0;
  const bytes = createStorageBytes({
    clock,
    store: {
      async storageOf() {
        measured += 1;
        clock.advance(tookMs);
        return 100 * measured;
      },
    },
  });
  return { clock, bytes, measured: () => measured };
}

test("the bytes of an account are measured once a minute, however often they are asked for", async () => {
  const { clock, bytes, measured } = setUp();
  expect(await Promise.all([bytes(1), bytes(1)])).toEqual([100, 100]);
  clock.advance(59_999);
  expect([await bytes(1), measured()]).toEqual([100, 1]);
  clock.advance(1);
  expect([await bytes(1), measured()]).toEqual([200, 2]);
  await bytes(2);
  expect(measured()).toBe(3);
});

test("what took long to measure is kept for longer", async () => {
  const { clock, bytes, measured } = setUp(2_000);
  await bytes(1);
  clock.advance(399_999);
  await bytes(1);
  expect(measured()).toBe(1);
  clock.advance(1);
  await bytes(1);
  expect(measured()).toBe(2);
});
