import { expect, test } from "bun:test";
import { endsDeliveries } from "../../../../web/pages/events/untold-ends.ts";

test.each([
  ["account.changed", { changed: "webhooks" }, true],
  ["account.changed", { changed: "inbox" }, false],
  ["webhook.changed", { state: "disabled" }, true],
  ["webhook.changed", { state: "active" }, false],
  ["replay.progressed", { status: "cancelled" }, true],
  ["replay.progressed", { status: "running" }, false],
] as const)("deliveries end by %s with %j: %p", (kind, news, ends) => {
  expect(endsDeliveries({ kind, data: () => news })).toBe(ends);
});
