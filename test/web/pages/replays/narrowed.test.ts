import { expect, test } from "bun:test";
import { mayReach } from "../../../../web/pages/replays/narrowed.ts";

const shop = { id: "wh_1", url: "https://shop.example/hook" };

test.each([
  ["one of everything", {}, true],
  ["one of a type, whatever the webhook", { filter: { type: "order.paid" } }, true],
  ["one for it, by its id", { filter: { webhook: shop.id } }, true],
  ["one for it, by its URL", { filter: { webhook: shop.url } }, true],
  ["not one for another webhook", { filter: { webhook: "wh_2" } }, false],
])("a webhook may be reached by %s", (_, replay, reaches) => {
  expect(mayReach(replay, shop)).toBe(reaches);
});
