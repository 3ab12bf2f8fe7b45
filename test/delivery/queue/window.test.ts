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
  expect([held, window.isFull]).toEqual([31, false]);
  window.hold(mebibyte);
  expect(window.isFull).toBe(true);
  window.letGo(mebibyte);
  window.letGo(mebibyte);
  expect([window.deliveries, window.hasRoomFor(mebibyte)]).toEqual([30, true]);
});
