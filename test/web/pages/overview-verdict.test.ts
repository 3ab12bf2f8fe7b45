import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Failures } from "../../../web/api/types.ts";
import {
  type Failing,
  failingOf,
  groupsOf,
  hasFailedSince,
  type Receiver,
  receiverOf,
  sinceThen,
} from "../../../web/pages/overview/failing.ts";
import type { Situation } from "../../../web/pages/overview/situation.ts";
import { untriedOf } from "../../../web/pages/overview/untried.ts";
import { since, verdictOf } from "../../../web/pages/overview/verdict.ts";

/** The zone of whoever looks at the page. */
const ownZone = process.env.TZ;
beforeEach(() => {
  process.env.TZ = "UTC";
});
afterEach(() => {
  if (ownZone === undefined) delete process.env.TZ;
  else process.env.TZ = ownZone;
});

const at = (time: string) => `2026-11-21T${time}:00.000Z`;
const ms = (time: string) => Date.parse(at(time));
const now = ms("14:02");

const shop = { id: "wh_shop", url: "https://shop.example/hook?key=secret", name: "Shop" };
const audit = { id: "wh_audit", url: "https://audit.example/hook?key=secret", name: "" };

const receiver = (
  webhook: { id: string; url: string; name: string },
  { inARowSince = null as number | null, failing_since = null as string | null } = {},
): Receiver => ({ ...webhook, inARowSince, failing_since, deliveredLately: [] });

const groupOf = (of: Partial<Failures["groups"][number]>): Failures["groups"][number] => ({
  targetWebhook: shop.url,
  webhookId: shop.id,
  errorCode: "http_status",
  statusCode: 404,
  answer: "",
  waiting: 0,
  failed: 1,
  ongoing: true,
  lastFailedAt: at("09:00"),
  firstIngestionTimestamp: at("08:41"),
  lastIngestionTimestamp: at("09:00"),
  eventTypes: [],
  eventIds: [],
  ...of,
});

describe("what fails", () => {
  test("counts what the server sums up because there is too much of it, also of a webhook that has nothing else", () => {
    const sumOf = (of: Partial<Failures["unlisted"][number]>) => {
      const { answer, eventTypes, eventIds, ...counts } = groupOf({});
      return { ...counts, groups: 1, ...of };
    };
    const groups = groupsOf({
      groups: [groupOf({ answer: "no such route", failed: 2, eventTypes: [{ type: "order.paid", records: 2 }] })],
      unlisted: [
        sumOf({ groups: 3, failed: 3, waiting: 1, firstIngestionTimestamp: at("08:00") }),
        sumOf({ webhookId: audit.id, errorCode: "timeout", statusCode: null }),
      ],
    });
    expect(failingOf({ groups }, [receiver(shop), receiver(audit)])).toMatchObject([
      { name: "Shop", failed: 5, causes: [{ answers: ["no such route"], moreAnswers: 3, firstAt: ms("08:00") }] },
      { name: "audit.example", failed: 1, causes: [{ answers: [], moreAnswers: 0 }] },
    ]);
  });

  test("is all that a server lists which sums nothing up, as one before an upgrade", () => {
    const groups = [groupOf({})];
    expect(groupsOf({ groups })).toEqual(groups);
  });

  test("is one cause for each code and status, because that is what a list can be narrowed to", () => {
    const groups = [
      groupOf({ answer: "no such route", failed: 2, eventTypes: [{ type: "order.paid", records: 2 }] }),
      groupOf({
        answer: "no such order",
        failed: 5,
        eventTypes: [
          { type: "refund", records: 4 },
          { type: "order.paid", records: 1 },
        ],
      }),
      groupOf({ statusCode: 500, waiting: 1, failed: 0 }),
      groupOf({ errorCode: "timeout", statusCode: null, failed: 9, lastFailedAt: at("09:30") }),
    ];
    const [failing] = failingOf({ groups }, [receiver(shop, { inARowSince: ms("08:41") })]);
    expect(failing).toMatchObject({ name: "Shop", isRegistered: true, waiting: 1, failed: 16, downSince: ms("08:41") });
    expect(
      failing?.causes.map(({ code, status, failed, answers, types }) => [code, status, failed, answers, types]),
    ).toEqual([
      ["timeout", null, 9, [], []],
      [
        "http_status",
        404,
        7,
        ["no such order", "no such route"],
        [
          { type: "refund", records: 4 },
          { type: "order.paid", records: 3 },
        ],
      ],
      ["http_status", 500, 0, [], []],
    ]);
  });

  test.each([
    ["the server says so", at("08:43"), ms("08:41"), true, ms("08:43")],
    ["its newest records failed one after the other", null, ms("08:41"), true, ms("08:41")],
    ["others of its newest records got through", null, null, true, null],
    ["its types have been delivered since", null, ms("08:41"), false, null],
  ])("is down, if %s", (_, failing_since, inARowSince, ongoing, downSince) => {
    const shopNow = receiver(shop, { failing_since, inARowSince });
    const [failing] = failingOf({ groups: [groupOf({ ongoing })] }, [shopNow]);
    expect(failing?.downSince).toBe(downSince);
  });

  const failed = (time: string) => ({
    ...{
      state: "FAILED",
      errorCode: "timeout",
      eventType: null,
      ingestionTimestamp: at(time),
      lastAttemptAt: at(time),
    },
  });
  const deliveredAt = (time: string, eventType: string | null = null) => ({
    ...{ state: "DELIVERED", errorCode: null, eventType, ingestionTimestamp: at(time), lastAttemptAt: at(time) },
  });
  const restored = { ...failed("08:45"), errorCode: "server_restored" };
  const untried = {
    state: "PENDING",
    errorCode: null,
    eventType: null,
    lastAttemptAt: null,
    ingestionTimestamp: at("08:59"),
  };
  const times = <T>(n: number, one: T): T[] => Array.from({ length: n }, () => one);
  const timedOut = (n: number, first: string) =>
    groupOf({ errorCode: "timeout", statusCode: null, waiting: n, failed: 0, firstIngestionTimestamp: at(first) });

  test.each([
    ["one of them, where nothing was delivered", [timedOut(1, "08:40")], [failed("08:40")], null, "08:40"],
    ["one, before any of the others was tried", [timedOut(1, "08:40")], times(10, untried), null, "08:40"],
    ["eight after the latest that was delivered", [timedOut(8, "08:41")], times(10, untried), "08:30", "08:41"],
    ["fewer after one that was delivered", [timedOut(7, "08:41")], [...times(7, failed("08:41"))], "08:30", null],
    ["eight, of which the first failed before it", [timedOut(8, "08:20")], times(10, untried), "08:30", null],
    [
      "that, and the newest show it",
      [timedOut(90, "08:20")],
      [untried, ...times(8, failed("08:41"))],
      "08:30",
      "08:41",
    ],
    ["eight before the latest that was delivered", [timedOut(9, "08:20")], times(9, failed("08:41")), "08:50", null],
    ["none but those of a restored server", [timedOut(8, "08:20")], times(9, restored), "08:30", null],
    ["eight that are over", [{ ...timedOut(8, "08:41"), ongoing: false }], times(9, failed("08:41")), "08:30", null],
    ["eight of another webhook", [{ ...timedOut(8, "08:41"), webhookId: audit.id }], [], null, null],
  ])("of its events, %s: in a row or not", (_, groups, latest, delivered, since) => {
    const newest = { latest, delivered: delivered === null ? [] : [deliveredAt(delivered)] };
    expect(receiverOf(shop, { groups }, newest).inARowSince).toBe(since === null ? null : ms(since));
  });

  const paid = [{ type: "order.paid", records: 1 }];
  test.each([
    ["one of its type was delivered since", { eventTypes: paid }, [deliveredAt("09:05", "order.paid")], false],
    ["one without a type was, as it is", { eventTypes: [{ type: null, records: 1 }] }, [deliveredAt("09:05")], false],
    ["one was among others", { eventTypes: paid }, [deliveredAt("09:06"), deliveredAt("09:05", "order.paid")], false],
    ["only other types were", { eventTypes: paid }, [deliveredAt("09:05", "refund"), deliveredAt("09:04")], true],
    ["one was, but before it failed", { eventTypes: paid }, [deliveredAt("08:55", "order.paid")], true],
    ["another one waits", { eventTypes: paid, waiting: 1 }, [deliveredAt("09:05", "order.paid")], true],
  ])("behind a backlog, fails for some events or not: %s", (_, group, delivered, isOngoing) => {
    const groups = [groupOf(group)];
    const shopNow = receiverOf(shop, { groups }, { latest: times(10, untried), delivered });
    expect(failingOf({ groups }, [shopNow])).toMatchObject([{ isOngoing, causes: [{ isOngoing }] }]);
  });

  test("is not known to be down while nothing was read of its records", () => {
    expect(receiverOf(shop, { groups: [timedOut(9, "08:41")] }, null).inARowSince).toBeNull();
  });

  test.each<[string, number, number, string | null, string | null]>([
    ["all of its records failed", 9, 9, null, "08:41"],
    ["some were not tried yet", 9, 10, null, null],
    ["eight failed since its latest success", 8, 100, "08:30", "08:41"],
    ["fewer did", 7, 100, "08:30", null],
    ["the first of them failed before its latest success", 8, 100, "08:50", null],
  ])("is down by its health, where that is all there is: %s", (_, failures, records, delivered, since) => {
    const health = { records, lastDeliveredAt: delivered === null ? null : at(delivered) };
    const shopNow = receiverOf(shop, { groups: [timedOut(failures, "08:41")] }, null, health);
    expect(shopNow.inARowSince).toBe(since === null ? null : ms(since));
    expect(receiverOf(audit, { groups: [timedOut(failures, "08:41")] }, null, health).inARowSince).toBeNull();
  });

  test("is also what has failed since earlier and got nothing in this time", () => {
    const told = receiver(shop, { failing_since: at("07:00") });
    expect(failingOf({ groups: [] }, [told, receiver(audit)])).toMatchObject([
      { name: "Shop", downSince: ms("07:00"), causes: [], failed: 0 },
    ]);
  });

  test("goes on since the server says so, and is replayed to no webhook that is disabled", () => {
    const told = { ...receiver(shop, { failing_since: at("08:43") }), state: "disabled" };
    const [failing] = failingOf({ groups: [groupOf({})] }, [told]);
    expect(failing).toMatchObject({ downSince: ms("08:43"), isRegistered: true, canReplay: false });
  });

  test("shows what can be replayed, then those that are down, then those that more failed for, and calls a webhook without a name by its URL", () => {
    const groups = [
      groupOf({ failed: 50, ongoing: false }),
      groupOf({ webhookId: audit.id, targetWebhook: audit.url }),
      groupOf({ webhookId: "wh_gone", targetWebhook: "https://gone.example/x", failed: 2, ongoing: false }),
      groupOf({ webhookId: null, targetWebhook: "", errorCode: "no_webhook", statusCode: null, ongoing: false }),
    ];
    const failing = failingOf({ groups }, [receiver(shop), receiver(audit, { failing_since: at("08:41") })]);
    expect(
      failing.map(({ name, isRegistered, canReplay, downSince }) => [
        name,
        isRegistered,
        canReplay,
        downSince !== null,
      ]),
    ).toEqual([
      ["audit.example", true, true, true],
      ["Shop", true, true, false],
      ["No webhook", false, true, false],
      ["gone.example", false, false, false],
    ]);
    const waits = { failed: 0, waiting: 90 };
    const retried = failingOf({ groups: [groupOf(waits), groupOf({ webhookId: audit.id })] }, [
      receiver(shop, { failing_since: at("08:41") }),
      receiver(audit),
    ]);
    expect(retried.map(({ name }) => name)).toEqual(["audit.example", "Shop"]);
  });
});

describe("a cause", () => {
  const removed = { code: "webhook_removed", isOngoing: false };
  const refused = { code: "http_status", isOngoing: false };
  const restored = { code: "server_restored", isOngoing: false };
  const well = { isRegistered: true, downSince: null };
  const gone = { isRegistered: false, downSince: null };
  test.each([
    ["of a webhook that has delivered such events since", refused, well, "delivered again since"],
    ["of one that has not", { ...refused, isOngoing: true }, well, "none of these delivered since"],
    ["of one that is down, as its heading says", { ...refused, isOngoing: true }, { ...well, downSince: 1 }, null],
    ["of a restored server, which says nothing about the webhook", restored, well, null],
    ["of a webhook that was removed", removed, gone, null],
    ["of a webhook that was removed after it had failed", refused, gone, null],
  ])("%s: what came after it", (_, cause, failing, words) => {
    expect(sinceThen(cause, failing)).toBe(words as "delivered again since" | null);
  });
});

const none = { n: 0, isExact: true };

describe("of failures in no group, a webhook", () => {
  const [ago, since] = [{ lastFailedAt: at("07:00") }, { lastFailedAt: at("09:00") }];
  test.each([
    ["has none", "nothing of it failed, however much waits", none, { lastFailedAt: null }, false],
    ["has none", "it failed before that time", none, ago, false],
    ["has some", "some of it failed for good", { n: 3, isExact: true }, { lastFailedAt: null }, true],
    ["has some", "some of it waits for a retry", none, since, true],
    ["has some", "its latest deliveries failed, where those of each webhook are not counted", null, since, true],
    ["may have some", "they are not counted", null, ago, null],
    ["may have some", "nothing is known of it, as of one just registered", null, undefined, null],
  ])("%s, if %s", (_, __, failed, health, has) => {
    expect(hasFailedSince(at("08:00"), failed, health)).toBe(has);
  });
});

const line = (name: string, state = "active") => ({
  ...receiver({ id: name, url: "", name }),
  state,
  all: null,
  delivered: null,
  pending: null,
  hasFailed: false,
});
const down = (name: string, time = "08:41"): Failing => ({
  id: name,
  name,
  isRegistered: true,
  canReplay: true,
  isOngoing: true,
  downSince: ms(time),
  causes: [],
  waiting: 0,
  failed: 1,
});

describe("of a webhook that gets nothing through, deliveries wait for their turn", () => {
  test.each([
    ["as many as wait for no retry", down("Shop"), { n: 200, isExact: true }, { n: 180, isExact: true }],
    ["at least as many as were counted", down("Shop"), { n: 10_000, isExact: false }, { n: 9_980, isExact: false }],
    ["none that were read a moment too early", down("Shop"), { n: 19, isExact: true }, none],
    ["none that were not counted", down("Shop"), null, none],
    ["none where others get through", { ...down("Shop"), downSince: null }, { n: 200, isExact: true }, none],
  ])("%s", (_, failing, pending, untried) => {
    expect(untriedOf({ ...failing, waiting: 20 }, pending)).toEqual(untried);
  });
});

describe("the verdict", () => {
  const calm: Situation = {
    from: at("13:00"),
    failing: [],
    others: 0,
    webhooks: [line("Shop"), line("Audit"), line("Inbox")],
    delivered: { n: 5, isExact: true },
    failed: none,
  };
  const some = { n: 14, isExact: true };

  test.each<[Partial<Situation>, string, string]>([
    [{}, "good", "All 3 webhooks deliver."],
    [{ webhooks: [line("Shop"), line("Audit")] }, "good", "Both webhooks deliver."],
    [{ webhooks: [line("Shop")] }, "good", "Shop delivers."],
    [{ delivered: none }, "none", "Nothing has been sent since 13:00."],
    [
      { delivered: none, webhooks: [{ ...line("Shop"), all: some }] },
      "none",
      "Nothing has been delivered since 13:00.",
    ],
    [
      { failed: some, delivered: none },
      "some",
      "Nothing has been delivered since 13:00. 14 deliveries failed and can be replayed.",
    ],
    [{ failed: some }, "some", "All 3 webhooks deliver. 14 deliveries failed and can be replayed."],
    [
      { failed: { n: 10_000, isExact: false } },
      "some",
      "All 3 webhooks deliver. More than 10\u202f000 deliveries failed and can be replayed.",
    ],
    [
      { failing: [{ ...down("Shop"), downSince: null }], failed: some },
      "some",
      "2 of 3 webhooks deliver everything. Shop fails for some events. 14 deliveries failed and can be replayed.",
    ],
    [
      { webhooks: [line("Shop")], failing: [{ ...down("Shop"), downSince: null }] },
      "some",
      "Shop fails for some events.",
    ],
    [
      { failing: [down("Shop"), { ...down("Audit"), downSince: null }] },
      "some",
      "1 of 3 webhooks delivers everything. Shop has failed since 08:41. Audit fails for some events.",
    ],
    [
      {
        webhooks: [line("Shop"), line("Audit")],
        failing: [down("Shop"), { ...down("Audit"), downSince: null }],
      },
      "some",
      "Shop has failed since 08:41. Audit fails for some events.",
    ],
    [{ failing: [down("Shop")] }, "some", "2 of 3 webhooks deliver. Shop has failed since 08:41."],
    [
      { failing: [down("Shop"), down("Audit", "09:02")] },
      "some",
      "1 of 3 webhooks delivers. Shop has failed since 08:41. Audit has failed since 09:02.",
    ],
    [
      { webhooks: [line("Shop")], failing: [down("Shop")] },
      "bad",
      "Nothing is delivered. Shop has failed since 08:41.",
    ],
    [{ webhooks: [line("Shop", "disabled"), line("Audit")] }, "some", "1 of 2 webhooks delivers. Shop is disabled."],
    [{ webhooks: [line("Shop", "paused")] }, "bad", "Nothing is delivered. Shop is paused."],
    [
      { webhooks: [line("Shop", "disabled"), line("Audit")], failing: [down("Shop")] },
      "some",
      "1 of 2 webhooks delivers. Shop is disabled.",
    ],
    [
      {
        webhooks: ["A", "B", "C", "D", "E"].map((name) => line(name)),
        failing: ["A", "B", "C", "D"].map((name) => down(name)),
      },
      "some",
      "1 of 5 webhooks delivers. A has failed since 08:41. B has failed since 08:41. C has failed since 08:41. 1 more fails as well.",
    ],
    [{ webhooks: [] }, "bad", "No webhook is registered, so nothing is delivered."],
  ])("of %j is %s: %s", (situation, tone, text) => {
    expect(verdictOf({ ...calm, ...situation }, now)).toEqual({ tone: tone as "good", text });
  });

  test("is that nothing is delivered while the operator holds deliveries back, whatever is delivered or failed", () => {
    const { tone, text } = verdictOf({ ...calm, failing: [down("Shop")] }, now, true);
    expect([tone, text]).toEqual([
      "some",
      "Nothing is delivered until the operator of this server resumes deliveries.",
    ]);
  });

  test("keeps a name from right to left apart from the figures beside it", () => {
    expect(verdictOf({ ...calm, failing: [down("מחסן")] }, now).text).toContain(
      "\u2068מחסן\u2069 has failed since 08:41.",
    );
  });

  test("names the day of what began on another one", () => {
    expect(since(ms("08:41"), now)).toBe("08:41");
    expect(since(Date.parse("2026-11-19T23:59:00Z"), now)).toBe("19 Nov 23:59");
  });
});
