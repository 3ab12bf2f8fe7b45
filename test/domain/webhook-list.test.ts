import { describe, expect, test } from "bun:test";
import { usualSettings } from "../../src/domain/webhook.ts";
import { type ListedWebhook, listTag, replaceWebhooks } from "../../src/domain/webhook-list.ts";
import { registered } from "../support/tenant-state.ts";

const [a, b] = [registered(1), registered(2)];
const orders = registered(1, { eventTypes: ["order.*"] });
const slow = registered(1, { rateLimit: 5 });
/** As a client lists it: under an id that counts only if its URL is new. */
const entry = (key: number, name = ""): ListedWebhook => ({ id: `new_${key}`, url: registered(key).url, name });

const paused = { ...entry(1), paused: true };
const paused2 = { ...entry(2), paused: true };

const replaced = (webhooks: (typeof a)[], wanted: ListedWebhook[]) =>
  replaceWebhooks({ gone: false, webhooks }, { webhooks: wanted, limit: 3 });

describe("the tag of a list", () => {
  test.each<[string, (typeof a)[]]>([
    ["another webhook", [a]],
    ["another order", [b, a]],
    ["another name", [{ ...a, name: "Shop" }, b]],
    ["other types", [{ ...a, eventTypes: ["order.*"] }, b]],
    ["another limit", [{ ...a, rateLimit: 5 }, b]],
    ["a pause", [{ ...a, paused: true }, b]],
    ["other headers", [{ ...a, sealedHeaders: new Uint8Array([1]) }, b]],
    ["the same URL under another id", [{ ...a, id: "wh_again" }, b]],
  ])("changes with %s", (_, changed) => {
    expect(listTag(changed)).not.toBe(listTag([a, b]));
  });

  test("is the same however deliveries have been going", () => {
    const since = { at: 5, errorCode: "timeout", statusCode: null };
    const disabled = { at: 9, reason: "failing" as const };
    const failing = { since: 5, goneInARow: 0, toldAt: null, warnedAt: null, ...since };
    expect(listTag([{ ...a, failing, disabled } as typeof a, b])).toBe(listTag([a, b]));
  });
});

describe("a list of webhooks that replaces the one before", () => {
  test.each<[string, (typeof a)[], ListedWebhook[], object]>([
    ["adds what is new", [a], [entry(1), entry(2)], { list: [a, entry(2)], removed: [], forgotten: [] }],
    ["keeps key and id, and takes the name", [a], [entry(1, "Shop")], { list: [{ ...a, name: "Shop" }] }],
    ["keeps the settings that it does not name", [orders], [entry(1, "Shop")], { list: [{ ...orders, name: "Shop" }] }],
    ["takes the settings that it names", [orders], [{ ...entry(1), eventTypes: null }], { list: [a] }],
    [
      "gives what is new the usual settings",
      [],
      [entry(1)],
      { list: [{ ...usualSettings, ...entry(1) }], throttled: [] },
    ],
    [
      "says which queues go by something else",
      [a, b],
      [paused, entry(2, "B")],
      { throttled: [{ before: a, after: { ...a, paused: true } }] },
    ],
    ["says so of none that are as they were", [slow], [{ ...entry(1), rateLimit: 5 }, paused2], { throttled: [] }],
    ["has its own order", [a, b], [entry(2), entry(1)], { list: [b, a], removed: [], forgotten: [] }],
    ["removes what it leaves out", [a, b], [entry(2)], { list: [b], removed: [1] }],
    ["may be empty", [a, b], [], { list: [], removed: [1, 2], forgotten: [1, 2] }],
    ["may be the first one", [], [entry(1)], { list: [entry(1)], removed: [], forgotten: [] }],
  ])("%s", (_, webhooks, wanted, change) => {
    expect(replaced(webhooks, wanted)).toMatchObject({ kind: "replaced", ...change });
  });

  const inOrder = registered(1, { ordered: true });
  test.each<[string, boolean, Partial<ListedWebhook>, number[]]>([
    ["is not ordered any more", true, { ordered: false }, [1]],
    ["stays ordered", true, {}, []],
    ["is ordered again", true, { ordered: true }, []],
    ["was not ordered", false, { ordered: false }, []],
  ])("names those of which the order ends: one that %s, %p to %j: %j", (_, ordered, wish, unordered) => {
    expect(replaced([{ ...inOrder, ordered }, b], [{ ...entry(1), ...wish }])).toMatchObject({ unordered });
  });

  test("may have as many as the plan allows", () => {
    expect(replaced([], [entry(1), entry(2), entry(3)])).toMatchObject({ kind: "replaced", removed: [] });
  });

  test.each([
    ["never had a record", false, [1]],
    ["has one", true, []],
    ["may have one", null, []],
  ])("forgets a webhook that %s: %p", (_, used, forgotten) => {
    expect(replaced([{ ...a, used }], [])).toMatchObject({ removed: [1], forgotten });
  });

  test.each([
    ["has more than the plan allows", false, 4, "too_many_webhooks"],
    ["is that of a deleted account, whatever it has", true, 4, "account_gone"],
  ])("is refused when it %s", (_, gone, entries, code) => {
    const wanted = Array.from({ length: entries }, (_entry, index) => entry(index));
    expect(replaceWebhooks({ gone, webhooks: [a] }, { webhooks: wanted, limit: 3 })).toMatchObject({
      kind: "refused",
      error: { code },
    });
  });
});
