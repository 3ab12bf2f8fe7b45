import { describe, expect, test } from "bun:test";
import { acceptOwn } from "../../src/domain/acceptance.ts";
import { aboutOf, isOwnPayload, ownPayload } from "../../src/domain/own-events.ts";
import { countOwnEvent, noEvents } from "../../src/domain/tenant-state.ts";
import { registered, tenantState } from "../support/tenant-state.ts";

const moment = { now: 1_000, orderedNow: 2_000 };
const type = "postrider.webhook.failing";
const utf8 = (payload: Uint8Array) => new TextDecoder().decode(payload);

const all = registered(1);
const ours = registered(2, { eventTypes: ["postrider.*"] });
const exactly = registered(3, { eventTypes: ["order.*", type] });
const others = registered(4, { eventTypes: ["order.*", "postrider.webhook.disabled"] });
const disabled = registered(5, { eventTypes: ["postrider.*"], disabled: { at: 0, reason: "gone" } });
const paused = registered(6, { eventTypes: ["postrider.*"], paused: true });

describe("an event of our own (rules, section 14)", () => {
  test.each<[string, number[], (typeof all)[], number]>([
    ["goes to those that name its type", [2, 3], [all, ours, exactly, others], 1],
    ["never to the one that it is about", [3], [ours, exactly], 2],
    ["waits for one that is paused", [6], [paused], 1],
    ["and for none that is disabled", [], [disabled], 1],
    ["is none, if nobody asks", [], [all, others], 1],
  ])("%s: %j", (_, takers, webhooks, aboutKey) => {
    const records = acceptOwn(tenantState({ webhooks }), { type, aboutKey }, true, moment);
    expect(records).toEqual(
      webhooks
        .filter(({ key }) => takers.includes(key))
        .map((webhook) => ({ state: "PENDING", webhook, nextAttemptAt: moment.now })),
    );
  });

  test("is none where the store may not grow, or the account is gone", () => {
    const state = { webhooks: [ours] };
    expect(acceptOwn(tenantState(state), { type, aboutKey: 1 }, false, moment)).toEqual([]);
    expect(acceptOwn(tenantState({ ...state, gone: true }), { type, aboutKey: 1 }, true, moment)).toEqual([]);
  });

  test("counts as an event, and not against the month's quota", () => {
    const counters = { ...noEvents, month: 202601, eventsInMonth: 9, events: 9 };
    expect(countOwnEvent(counters, [{ state: "PENDING" }])).toEqual({ ...counters, events: 10, pending: 1 });
  });

  test("names the webhook without what its URL may hide, and what happened", () => {
    const webhook = { id: "wh_1", name: "Shop", url: "https://shop.example:8443/t0ken?key=s3cret" };
    const payload = ownPayload(type, webhook, { failing_since: "2026-01-01T00:00:00.000Z" });
    expect(JSON.parse(utf8(payload))).toEqual({
      event_type: type,
      webhook: { id: "wh_1", name: "Shop", host: "shop.example:8443" },
      failing_since: "2026-01-01T00:00:00.000Z",
    });
  });

  test("says which webhook it is about, and none where it cannot be read", () => {
    const of = (text: string) => aboutOf(new TextEncoder().encode(text));
    expect(aboutOf(ownPayload(type, { id: "wh_1", name: "Shop", url: "https://shop.example/" }, {}))).toBe("wh_1");
    expect([of(""), of('{"event_ty'), of("null"), of('{"webhook":"wh_1"}'), of('{"webhook":{"id":1}}')]).toEqual(
      Array(5).fill(null),
    );
  });

  test("is known by its first bytes", () => {
    const of = (text: string) => isOwnPayload(new TextEncoder().encode(text));
    expect(isOwnPayload(ownPayload(type, all, {}))).toBe(true);
    expect([of("{}"), of('{"event_type":"order.paid"}'), of('{"type":"postrider.x"}'), of("")]).toEqual(
      Array(4).fill(false),
    );
  });
});
