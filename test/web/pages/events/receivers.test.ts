import { describe, expect, test } from "bun:test";
import { takes as takesOfServer } from "../../../../src/domain/event-types.ts";
import { receiversIn, receiversOf, takes } from "../../../../web/pages/events/receivers.ts";

const webhook = (name: string, state?: "active" | "paused" | "disabled", event_types: string[] | null = null) => ({
  ...{ id: `wh_${name}`, url: `https://${name}.example/hook`, name, event_types, ...(state && { state }) },
});
const record = (name: string, state: string) => ({
  ...{ state, targetWebhook: `https://${name}.example/hook`, eventType: "order.paid" },
});

test("a replay delivers to what is registered, not disabled, and takes the type of the event", () => {
  const webhooks = [
    ...[webhook("shop", "active"), webhook("books", "paused"), webhook("audit", "disabled")],
    ...[webhook("orders", "active", ["order.*"]), webhook("refunds", "active", ["refund.made"])],
  ];
  const namesFor = (type: string | null) => receiversOf(webhooks, type).map(({ name }) => name);
  expect(namesFor("order.paid")).toEqual(["shop", "books", "orders"]);
  expect(namesFor("refund.made")).toEqual(["shop", "books", "refunds"]);
  expect(namesFor(null)).toEqual(["shop", "books"]);
});

test("which types a webhook takes is decided as the server does", () => {
  const lists = [null, [], ["order.paid"], ["order.*", "refund"], ["postrider.*"], ["postrider.webhook.failing"]];
  const types = [null, "order", "order.paid", "order.paid.late", "orders.x", "refund", "postrider.webhook.failing"];
  for (const list of lists) {
    for (const type of types) expect([list, type, takes(list, type)]).toEqual([list, type, takesOfServer(list, type)]);
  }
});

describe("who would get an event again", () => {
  const receivers = [webhook("shop"), webhook("books"), webhook("refunds", "active", ["refund.*"])];

  test.each<[string, [name: string, state: string][], string[]]>([
    [
      "nobody when nobody has acknowledged it",
      [
        ["shop", "FAILED"],
        ["books", "PENDING"],
      ],
      [],
    ],
    [
      "those who have",
      [
        ["shop", "DELIVERED"],
        ["books", "FAILED"],
      ],
      ["shop"],
    ],
    [
      "not a webhook that was removed",
      [
        ["gone", "DELIVERED"],
        ["shop", "FAILED"],
      ],
      [],
    ],
    ["not a webhook that no longer takes the type", [["refunds", "DELIVERED"]], []],
    [
      "each of them once, whatever the number of events",
      [
        ["books", "DELIVERED"],
        ["books", "DELIVERED"],
      ],
      ["books"],
    ],
  ])("%s", (_, records, names) => {
    const found = receiversIn(
      "DELIVERED",
      records.map((one) => record(...one)),
      receivers,
    );
    expect(found).toEqual(names.map((name) => webhook(name).url));
  });

  test("and for whom it has failed", () => {
    const records = [record("gone", "FAILED"), record("shop", "DELIVERED"), record("books", "FAILED")];
    expect(receiversIn("FAILED", records, receivers)).toEqual([webhook("books").url]);
  });
});
