import { expect, test } from "bun:test";
import { createWindow, withoutRequest } from "../../../src/delivery/queue/window.ts";
import type { DueDelivery } from "../../../src/domain/delivery.ts";

const withPayload = (payload: Uint8Array) => ({ payload }) as DueDelivery;

test("a short payload lets go of the long request that it came in", () => {
  const request = new Uint8Array(5 * 2 ** 20).fill(7);
  const { payload } = withoutRequest(withPayload(request.subarray(100, 110)));
  expect(payload).toEqual(request.subarray(100, 110));
  expect(payload.buffer.byteLength).toBe(10);
});

test("a payload that is most of its request is not copied", () => {
  const delivery = withPayload(new Uint8Array(600).subarray(11, 599));
  expect(withoutRequest(delivery)).toBe(delivery);
});

test("the window has room for 32 MiB, and again for what was let go", () => {
  const window = createWindow();
  const mebibyte = withPayload(new Uint8Array(2 ** 20));
  let held = 0;
  for (; window.hasRoomFor(mebibyte); held += 1) window.hold(mebibyte);
  expect(held).toBe(31);
  window.hold(mebibyte);
  expect(window.hasRoom).toBe(false);
  window.letGo(mebibyte);
  window.letGo(mebibyte);
  expect([window.deliveries, window.hasRoomFor(mebibyte)]).toEqual([30, true]);
});

test.each([
  ["4,096 deliveries", 10, 4_096],
  ["16 MiB", 2 ** 20, 16],
])("backlogs have their half of the window with %s", (_, bytes, half) => {
  const window = createWindow();
  const delivery = withPayload(new Uint8Array(bytes));
  for (let held = 1; held < half; held += 1) window.hold(delivery);
  expect(window.isHalfFull).toBe(false);
  window.hold(delivery);
  expect([window.isHalfFull, window.hasRoomFor(delivery)]).toEqual([true, true]);
});
