import { describe, expect, test } from "bun:test";
import { chipsOf } from "../../../../web/pages/events/chips.ts";
import { everything } from "../../../../web/pages/events/filter.ts";
import { replayableUrl, withRemoved } from "../../../../web/pages/events/removed-webhook.ts";

const shop = { id: "wh_1", url: "https://shop.example/hook", name: "Shop" };
const failed = { targetWebhook: "https://gone.example/hook?key=s3cret", state: "FAILED" };
const delivered = { ...failed, state: "DELIVERED" };

describe("a list of a webhook that was removed", () => {
  test("calls it by its host", () => {
    const filter = { ...everything, webhook: "wh_gone" };
    const known = withRemoved([shop], "wh_gone", [failed]);
    expect(chipsOf(filter, known).map(({ text }) => text)).toEqual(["gone.example, removed"]);
    expect(known?.[0]).toBe(shop);
  });

  test.each([
    ["any webhook", "", [failed]],
    ["one that is registered", "wh_1", [failed]],
    ["one of which nothing is listed", "wh_gone", []],
  ])("of %s adds nothing to the choice", (_, chosen, records) => {
    expect(withRemoved([shop], chosen, records)).toEqual([shop]);
  });

  test.each([
    ["what failed", "wh_gone", [delivered, failed], "/events?state=failed&code=webhook_removed"],
    ["nothing that failed", "wh_gone", [delivered], null],
    ["what failed for a registered one", "wh_1", [failed], null],
  ])("of %s leads to where it can be replayed, or nowhere", (_, webhook, records, url) => {
    const filter = { ...everything, webhook, code: "webhook_removed", page: 2 };
    expect(replayableUrl(filter, records, [shop])).toBe(url);
  });

  test("leads nowhere until it is known which are registered", () => {
    expect(replayableUrl({ ...everything, webhook: "wh_1" }, [failed], undefined)).toBeNull();
  });
});
