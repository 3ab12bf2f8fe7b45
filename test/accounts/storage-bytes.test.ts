import { expect, test } from "bun:test";
import { createStorageBytes } from "../../src/accounts/storage-bytes.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Each measure takes so long, and says a hundred more than the one before. */
function setUp(tookMs = 0) {
  const clock = createFakeClock();
  let measured = 0;
  const bytes = createStorageBytes({
    clock,
    store: {
      storageOf() {
        measured += 1;
        const said = 100 * measured;
        return tookMs === 0
          ? Promise.resolve(said)
          : new Promise((resolve) => clock.after(tookMs, () => resolve(said)));
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

test("nobody waits for what takes long: until it is measured they are what they were, and at first nothing is known", async () => {
  const { clock, bytes, measured } = setUp(2_000);
  const first = bytes(1);
  clock.advance(250);
  expect(await first).toBeNull();
  clock.advance(1_750);
  expect(await bytes(1)).toBe(100);
  clock.advance(399_999);
  expect([await bytes(1), measured()]).toEqual([100, 1]);
  clock.advance(1);
  const again = bytes(1);
  clock.advance(250);
  expect([await again, measured()]).toEqual([100, 2]);
  clock.advance(1_750);
  expect(await bytes(1)).toBe(200);
});
