import { describe, expect, test } from "bun:test";
import { receiversIn, receiversOf } from "../../../../web/pages/events/receivers.ts";

const webhook = (name: string, state?: "active" | "paused" | "disabled") => ({
  ...{ id: `wh_${name}`, url: `https://${name}.example/hook`, name, ...(state && { state }) },
});
const record = (name: string, state: string) => ({ state, targetWebhook: `https://${name}.example/hook` });

test("a replay delivers to what is registered and not disabled", () => {
  const webhooks = [webhook("shop", "active"), webhook("books", "paused"), webhook("audit", "disabled")];
  expect(receiversOf(webhooks).map(({ name }) => name)).toEqual(["shop", "books"]);
});

describe("who would get an event again", () => {
  const receivers = [webhook("shop"), webhook("books")];

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
