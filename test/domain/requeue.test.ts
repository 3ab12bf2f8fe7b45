import { describe, expect, test } from "bun:test";
import { beforeRun } from "../../src/domain/cancelled-run.ts";
import type { DeliveryState } from "../../src/domain/delivery.ts";
import type { FailureSelection } from "../../src/domain/event.ts";
import type { ReplayKind } from "../../src/domain/replay.ts";
import { type ReplayedRecord, requeue } from "../../src/domain/requeue.ts";
import type { Counters } from "../../src/domain/tenant-state.ts";
import { registered } from "../support/tenant-state.ts";

const moment = { now: 1_000, orderedNow: 2_000 };
const [a, b, c] = [registered(1), registered(2), registered(3)];
/** Was removed. */
const gone = registered(9);
const counters: Counters = {
  month: 202601,
  eventsInMonth: 9,
  events: 9,
  pending: 10,
  delivered: 10,
  failed: 10,
  skipped: 10,
};

/** A record for a webhook; its key says which, and null is that of an event that found none. */
const recordOf = (
  webhook: { key: number; url: string } | null,
  state: DeliveryState,
  changes: Partial<ReplayedRecord> = {},
): ReplayedRecord => ({
  key: (webhook?.key ?? 0) * 100,
  webhookKey: webhook?.key ?? null,
  url: webhook?.url ?? null,
  state,
  attempts: 1,
  attemptsInRun: 1,
  nextAttemptAt: state === "PENDING" ? 7_000 : null,
  errorReason: state === "FAILED" ? "HTTP 404" : null,
  errorCode: state === "FAILED" ? "http_status" : null,
  statusCode: state === "FAILED" ? 404 : null,
  finishedAt: state === "PENDING" ? null : 500,
  replayKey: null,
  before: null,
  failureKey: null,
  ...changes,
});

const replayed = (
  webhooks: (typeof a)[],
  records: ReplayedRecord[],
  kind: ReplayKind = "single",
  {
    webhookKeys = null,
    failure = null,
    type = null,
    payloadErased = false,
    aboutId = null,
  }: {
    webhookKeys?: number[] | null;
    failure?: FailureSelection | null;
    type?: string | null;
    payloadErased?: boolean;
    aboutId?: string | null;
  } = {},
) => {
  const { added, restarted, replaced, ...rest } = requeue(
    { webhooks, counters },
    { type, payloadErased, aboutId, records },
    { kind, webhookKeys, failure },
    moment,
  );
  const keys = (list: readonly ReplayedRecord[]) => list.map(({ key }) => key);
  return {
    added: added.map(({ webhook }) => webhook.key),
    restarted: keys(restarted),
    replaced: keys(replaced),
    ...rest,
  };
};

/** Nothing of it happens, unless a row says so. */
const nothing = { added: [], restarted: [], replaced: [], superseded: [], skipped: 0, webhookKeys: [], failures: [] };

describe("a replay of an event (rules, section 10)", () => {
  test.each([
    ["delivers what has failed again", "single", [recordOf(a, "FAILED")], [100]],
    ["delivers what was delivered again", "single", [recordOf(a, "DELIVERED")], [100]],
    ["of a time line does too", "timeline", [recordOf(a, "DELIVERED")], [100]],
    ["of everything does too", "all", [recordOf(a, "DELIVERED")], [100]],
    ["of what has failed leaves out what was delivered", "failed", [recordOf(a, "DELIVERED")], []],
    ["of what has failed delivers that again", "failed", [recordOf(a, "FAILED")], [100]],
    ["of what has failed starts what waits anew", "failed", [recordOf(a, "PENDING")], [100]],
  ] as const)("%s", (_, kind, records, restarted) => {
    const webhookKeys = restarted.length > 0 ? [a.key] : [];
    expect(replayed([a], [...records], kind)).toMatchObject({ ...nothing, restarted, webhookKeys });
  });

  test("goes to every registered webhook, in their order, whether it has a record or not", () => {
    const records = [recordOf(c, "DELIVERED"), recordOf(a, "FAILED")];
    expect(replayed([a, b, c], records)).toMatchObject({
      ...nothing,
      added: [b.key],
      restarted: [100, 300],
      webhookKeys: [a.key, b.key, c.key],
    });
  });

  test("of what has failed goes to those that have not acknowledged it", () => {
    const records = [recordOf(a, "DELIVERED"), recordOf(b, "FAILED")];
    expect(replayed([a, b, c], records, "failed")).toMatchObject({
      ...nothing,
      added: [c.key],
      restarted: [200],
      webhookKeys: [b.key, c.key],
    });
  });

  test.each<ReplayKind>(["single", "all", "failed"])(
    "of our own is not for the webhook that it is about (%s)",
    (kind) => {
      const asks = { eventTypes: ["postrider.*"] };
      const [about, other] = [registered(1, asks), registered(2, asks)];
      const news = { type: "postrider.webhook.failing", aboutId: about.id };
      expect(replayed([about, other], [recordOf(other, "FAILED")], kind, news)).toMatchObject({
        ...{ added: [], restarted: [200], replaced: [], skipped: 0, webhookKeys: [2] },
      });
      // The other one is gone: nobody is left who may have it.
      expect(replayed([about], [recordOf(gone, "FAILED")], kind, news)).toMatchObject({
        added: [],
        replaced: [],
        skipped: 1,
      });
    },
  );

  test("is due at once, by the clock", () => {
    const replaying = { kind: "single", webhookKeys: null, failure: null } as const;
    const event = { type: null, payloadErased: false, records: [recordOf(b, "FAILED")] };
    const { added, nextAttemptAt } = requeue({ webhooks: [a, b], counters }, event, replaying, moment);
    expect({ added, nextAttemptAt }).toEqual({
      added: [{ state: "PENDING", webhook: a, nextAttemptAt: moment.now, returnsTo: { state: "NONE" } }],
      nextAttemptAt: moment.now,
    });
  });
});

describe("a replay for one webhook alone", () => {
  const records = [recordOf(a, "FAILED"), recordOf(b, "FAILED"), recordOf(gone, "FAILED"), recordOf(null, "FAILED")];

  test.each<[string, number[], Partial<ReturnType<typeof replayed>>]>([
    ["leaves out the others", [b.key], { restarted: [200], webhookKeys: [b.key] }],
    ["adds the record that it has not", [c.key], { added: [c.key], webhookKeys: [c.key] }],
    [
      "replaces its own record of before it was removed and registered again",
      [gone.key, c.key],
      { added: [c.key], replaced: [900], webhookKeys: [c.key] },
    ],
    ["skips its own record, if it is registered no more", [gone.key], { skipped: 1 }],
    ["does nothing, if there is no such webhook", [], {}],
  ])("%s", (_, webhookKeys, expected) => {
    const {
      counters: _counters,
      nextAttemptAt: _at,
      ...change
    } = replayed([a, b, c], records, "single", { webhookKeys });
    expect(change).toEqual({ ...nothing, ...expected });
  });

  test("leaves out what it has acknowledged, if it is one of what has failed", () => {
    expect(
      replayed([a, b], [recordOf(a, "DELIVERED"), recordOf(b, "FAILED")], "failed", { webhookKeys: [a.key] }),
    ).toMatchObject(nothing);
  });
});

describe("the type of the event is asked for anew", () => {
  const orders = registered(1, { eventTypes: ["order.*"] });

  test("so what no webhook took goes to one that takes it by now, whose record replaces the one before", () => {
    expect(replayed([orders, b], [recordOf(null, "SKIPPED")], "all", { type: "order.paid" })).toMatchObject({
      added: [orders.key, b.key],
      replaced: [0],
      skipped: 0,
      counters: { ...counters, pending: 12, skipped: 9 },
    });
  });

  test("so what still no webhook takes stays as it is, and is no failure", () => {
    expect(replayed([orders], [recordOf(null, "SKIPPED")], "all", { type: "refund" })).toMatchObject({
      ...nothing,
      counters,
    });
  });

  test("so a record of a webhook that does not take it any more is left as it is, a failed one counted as skipped", () => {
    const records = [recordOf(orders, "FAILED"), recordOf(b, "DELIVERED")];
    expect(replayed([orders, b], records, "all", { type: "refund" })).toMatchObject({
      ...nothing,
      restarted: [200],
      skipped: 1,
      webhookKeys: [b.key],
    });
  });
});

describe("a disabled webhook", () => {
  const disabled = registered(2, { disabled: { at: 500, reason: "failing" } });

  test("gets nothing of a replay: its records stay, failed ones counted as skipped", () => {
    const records = [recordOf(a, "DELIVERED"), recordOf(disabled, "FAILED")];
    expect(replayed([a, disabled], records, "all")).toMatchObject({
      ...nothing,
      restarted: [100],
      skipped: 1,
      webhookKeys: [a.key],
    });
  });

  test("is not what a record without a webhook is replaced for", () => {
    expect(replayed([disabled], [recordOf(null, "FAILED")], "failed")).toMatchObject({ ...nothing, skipped: 1 });
  });
});

describe("a replay of one failure alone", () => {
  const timedOut = { errorCode: "timeout", statusCode: null } as const;
  test.each<[string, FailureSelection, ReplayedRecord[], Partial<ReturnType<typeof replayed>>]>([
    [
      "goes to those that have failed so",
      { code: "http_status", status: null },
      [recordOf(a, "FAILED"), recordOf(b, "FAILED", timedOut), recordOf(c, "DELIVERED")],
      { restarted: [100], webhookKeys: [a.key] },
    ],
    [
      "goes to those with that status",
      { code: "http_status", status: 404 },
      [recordOf(a, "FAILED"), recordOf(b, "FAILED", { statusCode: 503 })],
      { restarted: [100], webhookKeys: [a.key] },
    ],
    [
      "starts those anew that wait after it",
      { code: "timeout", status: null },
      [recordOf(a, "PENDING", timedOut), recordOf(b, "PENDING")],
      { restarted: [100], webhookKeys: [a.key] },
    ],
    [
      "adds no record",
      { code: "http_status", status: null },
      [recordOf(a, "FAILED")],
      { restarted: [100], webhookKeys: [a.key] },
    ],
    [
      "adds those for which the failed one makes room",
      { code: "no_webhook", status: null },
      [recordOf(null, "FAILED", { errorCode: "no_webhook", statusCode: null })],
      { added: [a.key, b.key, c.key], replaced: [0], webhookKeys: [a.key, b.key, c.key] },
    ],
    [
      "leaves out those that never had the event, whatever failed so for one that is gone",
      { code: "http_status", status: null },
      [recordOf(gone, "FAILED"), recordOf(a, "DELIVERED")],
      { skipped: 1 },
    ],
    [
      "goes to the URL that failed so before it was removed and registered again, and to no other",
      { code: "http_status", status: null },
      [recordOf(gone, "FAILED"), recordOf({ ...b, key: 8 }, "FAILED")],
      { added: [b.key], replaced: [800], skipped: 1, webhookKeys: [b.key] },
    ],
  ])("%s", (_, failure, records, expected) => {
    const { counters: _c, nextAttemptAt: _at, ...change } = replayed([a, b, c], records, "all", { failure });
    expect(change).toEqual({ ...nothing, ...expected });
  });

  const of404: FailureSelection = { code: "http_status", status: 404 };
  const before = { ...c, key: 8 };
  test.each<[string, ReplayedRecord[], Partial<ReturnType<typeof replayed>>]>([
    [
      "what failed so for one that is gone",
      [recordOf(gone, "FAILED"), recordOf(a, "DELIVERED")],
      { added: [c.key], replaced: [900], webhookKeys: [c.key] },
    ],
    ["nothing that failed otherwise for one that is gone", [recordOf(gone, "FAILED", timedOut)], {}],
    ["nothing that failed so for another that is registered", [recordOf(a, "FAILED")], {}],
    ["nothing that it has acknowledged itself", [recordOf(gone, "FAILED"), recordOf(c, "DELIVERED")], {}],
    [
      "nothing that it had acknowledged before it was removed and registered again",
      [recordOf(gone, "FAILED"), recordOf(before, "DELIVERED")],
      {},
    ],
    [
      "what it had failed so before it was removed and registered again, and nothing of others",
      [recordOf(gone, "FAILED"), recordOf(before, "FAILED")],
      { added: [c.key], replaced: [800], webhookKeys: [c.key] },
    ],
    [
      "what it has failed so itself, and skips nothing of others",
      [recordOf(gone, "FAILED"), recordOf(c, "FAILED")],
      { restarted: [300], webhookKeys: [c.key] },
    ],
  ])("for one webhook sends it %s", (_, records, expected) => {
    const options = { failure: of404, webhookKeys: [c.key, before.key] };
    const { counters: _c, nextAttemptAt: _at, ...change } = replayed([a, b, c], records, "failed", options);
    expect(change).toEqual({ ...nothing, ...expected });
  });

  test("returns a record to what it stands for, of several that it replaces, if it is cancelled", () => {
    const [one, two] = [
      recordOf({ ...a, key: 7 }, "FAILED"),
      recordOf({ ...b, key: 8 }, "FAILED", { finishedAt: 600 }),
    ];
    const replaying = { kind: "failed", webhookKeys: null, failure: of404 } as const;
    const event = { type: null, payloadErased: false, records: [one, two] };
    expect(requeue({ webhooks: [a, b], counters }, event, replaying, moment).added).toMatchObject([
      { webhook: a, returnsTo: beforeRun(one, moment) },
      { webhook: b, returnsTo: beforeRun(two, moment) },
    ]);
  });
});

describe("the run that a replay began", () => {
  test.each([
    ["PENDING", 7, [7]],
    ["PENDING", null, []],
    ["FAILED", 7, []],
    ["DELIVERED", 7, []],
  ] as const)("of a record %s, by the replay %p: superseded are %j", (state, replayKey, superseded) => {
    expect(replayed([a], [recordOf(a, state, { replayKey })])).toMatchObject({ restarted: [100], superseded });
  });

  test("goes on where the replay of what has failed passes it over", () => {
    expect(replayed([a], [recordOf(gone, "PENDING", { replayKey: 7 })], "failed")).toMatchObject({ superseded: [] });
  });
});

describe("a record of a webhook that is gone", () => {
  test.each([
    ["makes room for one of a webhook that had none", [b], [recordOf(gone, "FAILED")], { replaced: [900] }],
    ["of no webhook at all makes room too", [b], [recordOf(null, "FAILED")], { replaced: [0] }],
    ["is skipped when all have one", [a], [recordOf(a, "FAILED"), recordOf(gone, "FAILED")], { skipped: 1 }],
    ["is skipped when nothing is registered", [], [recordOf(null, "FAILED")], { skipped: 1 }],
    ["stays when it was delivered", [b], [recordOf(gone, "DELIVERED")], {}],
    ["stays while it waits to be failed", [b], [recordOf(gone, "PENDING")], {}],
  ])("%s", (_, webhooks, records, expected) => {
    const { replaced, skipped } = replayed(webhooks, records);
    expect({ replaced, skipped }).toEqual({ replaced: [], skipped: 0, ...expected });
  });
});

describe("of an event whose payload was erased", () => {
  test.each<[string, (typeof a)[], ReplayedRecord[], ReplayKind, number]>([
    ["a delivery that was made is not made again", [a], [recordOf(a, "DELIVERED")], "all", 1],
    ["what has failed stays so", [a], [recordOf(a, "FAILED")], "failed", 1],
    [
      "only what would be sent counts as skipped",
      [a, b],
      [recordOf(a, "DELIVERED"), recordOf(b, "FAILED")],
      "failed",
      1,
    ],
    ["a webhook that has come since gets nothing", [a, b], [recordOf(a, "FAILED")], "all", 2],
  ])("%s", (_, webhooks, records, kind, skipped) => {
    expect(replayed(webhooks, records, kind, { payloadErased: true })).toMatchObject({
      ...{ added: [], restarted: [], replaced: [], webhookKeys: [], failures: [], skipped },
      counters,
    });
  });
});

describe("what a record returns to, if the replay is cancelled while it waits", () => {
  const change = (webhooks: (typeof a)[], ...records: ReplayedRecord[]) =>
    requeue(
      { webhooks, counters },
      { type: null, payloadErased: false, records },
      { kind: "single", webhookKeys: null, failure: null },
      moment,
    );

  test.each(["DELIVERED", "FAILED", "PENDING"] as const)("is that it was %s", (state) => {
    const record = recordOf(a, state);
    expect(change([a], record).restarted).toMatchObject([{ returnsTo: beforeRun(record, moment) }]);
  });

  test("is nothing, of one that is added beside others", () => {
    expect(change([a, b], recordOf(a, "FAILED")).added).toMatchObject([{ returnsTo: { state: "NONE" } }]);
  });

  test.each(["FAILED", "SKIPPED"] as const)(
    "is the one that was %s whose place it takes: no event is without",
    (state) => {
      const record = recordOf(null, state);
      expect(change([a, b], record).added).toMatchObject([a, b].map(() => ({ returnsTo: beforeRun(record, moment) })));
    },
  );
});

describe("the counters", () => {
  test.each([
    ["a record that is added waits", [recordOf(a, "DELIVERED")], [a, b], { delivered: 9, pending: 12 }],
    ["one that had failed waits", [recordOf(a, "FAILED")], [a], { failed: 9, pending: 11 }],
    ["one that waits goes on waiting", [recordOf(a, "PENDING")], [a], {}],
    ["one that is replaced is counted no more", [recordOf(null, "FAILED")], [a], { failed: 9, pending: 11 }],
    ["one that is skipped stays where it is", [recordOf(null, "FAILED")], [], {}],
  ])("%s", (_, records, webhooks, changed) => {
    expect(replayed(webhooks, records).counters).toEqual({ ...counters, ...changed });
  });
});

describe("the groups of failures", () => {
  const failureKey = 7;
  test.each([
    [
      "count one that had failed as waiting",
      [recordOf(a, "FAILED", { failureKey })],
      [
        [0, -1],
        [1, 0],
      ],
    ],
    ["go on counting one that waits", [recordOf(a, "PENDING", { failureKey })], []],
    ["know nothing of one that was delivered", [recordOf(a, "DELIVERED")], []],
    ["count one that is replaced no more", [recordOf(null, "FAILED", { failureKey })], [[0, -1]]],
  ])("%s", (_, records, moves) => {
    const { failures } = replayed([a], records);
    expect(failures).toEqual(moves.map(([waiting = 0, failed = 0]) => ({ failureKey, waiting, failed })));
  });
});
