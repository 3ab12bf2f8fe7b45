import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createHistory, type History, type HistoryRecord } from "../../src/cli/listen/history.ts";
import { type Kind, type Start, startAt } from "../../src/cli/listen/options.ts";
import { createSource, type Item } from "../../src/cli/listen/source.ts";
import { encodeEventId, firstSeqAt, ingestedAtMs, parseEventId, randomTail } from "../../src/lib/id.ts";
import { formatIso } from "../../src/lib/iso-time.ts";

const bootMs = Date.UTC(2026, 2, 1, 12);
/** The nth event of a millisecond. */
const idAt = (ms: number, n = 0) => encodeEventId(firstSeqAt(ms) + n, randomTail());
const msOf = (eventId: string) => ingestedAtMs(parseEventId(eventId)?.seq ?? 0);
const recordOf = (eventId: string): HistoryRecord => ({
  eventId,
  targetWebhook: "",
  attempts: 0,
  replayGroupId: null,
  lastAttemptMs: null,
});

/** What is stored, of which a test says when it comes. */
function storeOf(eventIds: readonly string[]): History & { readFrom: number[] } {
  const readFrom: number[] = [];
  return {
    readFrom,
    newestId: () => Promise.resolve(eventIds.at(-1) ?? null),
    async *read(_list, fromMs, untilMs) {
      readFrom.push(fromMs);
      yield eventIds.filter((id) => msOf(id) >= fromMs && msOf(id) <= untilMs).map(recordOf);
    },
  };
}

function begin(
  history: History,
  {
    kinds = ["accepted"],
    start = startAt(bootMs),
    serverNow = () => Number.POSITIVE_INFINITY,
  }: { kinds?: Kind[]; start?: Start; serverNow?: () => number } = {},
) {
  const source = createSource({ kinds: new Set(kinds), history, start, serverNow });
  const items = source.items(new AbortController().signal);
  return {
    ...source,
    accept: (eventId: string) => source.offer("event.accepted", { eventId }),
    async take(n: number): Promise<string[]> {
      const taken: Item[] = [];
      while (taken.length < n) taken.push((await items.next()).value);
      return taken.map(({ eventId }) => eventId);
    },
  };
}

describe("a source", () => {
  test("gives what the stream says, in its order", async () => {
    const ids = [idAt(bootMs), idAt(bootMs, 1), idAt(bootMs + 5)];
    const { accept, take } = begin(storeOf([]));
    for (const id of ids) accept(id);
    expect(await take(3)).toEqual(ids);
  });

  test("gives once what comes by both ways, and one whose turn in the stream was lost to a later one of its commit", async () => {
    const [first, second, third] = [idAt(bootMs), idAt(bootMs + 1), idAt(bootMs + 2)] as const;
    const stored = [first, second, third];
    const { accept, missed, take } = begin(storeOf(stored));
    accept(third);
    accept(first);
    expect(await take(2)).toEqual([third, first]);
    missed();
    const last = idAt(bootMs + 3);
    const taken = take(2);
    stored.push(last);
    accept(last);
    accept(first);
    expect(await taken).toEqual([second, last]);
  });

  test("drops what has no room, and reads it from the history when its turn has come", async () => {
    const stored = Array.from({ length: 25_000 }, (_, i) => idAt(bootMs + Math.floor(i / 10), i % 10));
    const history = storeOf(stored);
    const { accept, take } = begin(history);
    for (const id of stored) accept(id);
    expect(history.readFrom).toEqual([]);
    expect(await take(25_000)).toEqual(stored);
    expect(history.readFrom).toEqual([bootMs]);
  });

  test("finds what a server had accepted and, as it died, not announced, though others have announced newer ones", async () => {
    const unannounced = idAt(bootMs + 1_000);
    const others = Array.from({ length: 20 }, (_, n) => idAt(bootMs + (n + 2) * 1_000));
    const stored = [unannounced, ...others];
    const { accept, missed, take } = begin(storeOf(stored));
    for (const id of others) accept(id);
    expect(await take(20)).toEqual(others);
    missed();
    const last = idAt(bootMs + 22_000);
    accept(last);
    stored.push(last);
    expect(await take(2)).toEqual([unannounced, last]);
  });

  test.each([
    ["a little when it had no room", 500, false],
    ["a minute when the stream has had a gap since", 60_000, true],
  ])("reads the history from before what it has: %s", async (_when, overlapMs, isMissed) => {
    const seen = idAt(bootMs + 100_000);
    const next = idAt(bootMs + 100_001);
    const history = storeOf([seen, next]);
    const { accept, missed, take } = begin(history);
    accept(seen);
    await take(1);
    for (let n = 0; n <= 10_000; n += 1) accept(next);
    if (isMissed) missed();
    expect(await take(1)).toEqual([next]);
    expect(history.readFrom).toEqual([bootMs + 100_000 - overlapMs]);
  });

  test("gives nothing of before its start, and all of what came in that millisecond after it", async () => {
    const stored = [0, 1, 2, 3].map((n) => idAt(bootMs, n));
    const start = { afterId: stored[1] ?? "", fromMs: bootMs, isNow: true };
    const history = storeOf(stored);
    const { missed, take } = begin(history, { start });
    missed();
    expect(await take(2)).toEqual(stored.slice(2));
    expect(history.readFrom).toEqual([bootMs]);
  });

  test("gives an event again for each end of its deliveries", async () => {
    const eventId = idAt(bootMs);
    const { offer, take } = begin(storeOf([]), { kinds: ["failed", "delivered"] });
    const end = (targetWebhook: string, attempts: number, state: string) => {
      offer("delivery.attempted", { eventId, startedAt: formatIso(bootMs) });
      offer("delivery.finished", { eventId, targetWebhook, attempts, state });
    };
    end("https://a.example/", 1, "FAILED");
    end("https://b.example/", 1, "DELIVERED");
    end("https://a.example/", 2, "DELIVERED");
    end("https://a.example/", 2, "DELIVERED");
    offer("replay.progressed", {});
    end("https://a.example/", 3, "FAILED");
    expect(await take(4)).toEqual([eventId, eventId, eventId, eventId]);
  });
});

describe("a source of ends", () => {
  const hourMs = 60 * 60_000;

  test("finds one that was told and dropped while the history was read, in which newer ones had been found", async () => {
    const stored: HistoryRecord[] = [];
    const sortedIds = () => stored.map(({ eventId }) => eventId).sort();
    const history: History = {
      newestId: () => Promise.resolve(sortedIds().at(-1) ?? null),
      // Each window is read when its turn has come.
      async *read(_list, fromMs, untilMs) {
        for (let from = fromMs; from <= untilMs; from += hourMs) {
          const to = Math.min(untilMs, from + hourMs - 1);
          yield stored.filter(({ eventId }) => msOf(eventId) >= from && msOf(eventId) <= to);
        }
      },
    };
    const start = startAt(bootMs - 3 * hourMs);
    const { offer, missed, take } = begin(history, { kinds: ["delivered"], start });
    const deliver = (eventId: string, attemptMs = msOf(eventId), attempts = 1) => {
      stored.push({ ...recordOf(eventId), attempts, lastAttemptMs: attemptMs });
      offer("delivery.attempted", { eventId, startedAt: formatIso(attemptMs) });
      offer("delivery.finished", { eventId, targetWebhook: "", attempts, state: "DELIVERED" });
    };
    const [old, retried, last] = [idAt(bootMs - 2 * hourMs), idAt(bootMs - 60_000), idAt(bootMs - 1_000)] as const;
    deliver(old);
    deliver(last);
    missed();
    expect(await take(1)).toEqual([old]);
    const dropped = idAt(bootMs + 10_000);
    deliver(dropped);
    deliver(retried, bootMs + 90_000, 2);
    expect(await take(2)).toEqual([last, retried]);
    missed();
    const later = idAt(bootMs + 100_000);
    deliver(later);
    expect(await take(2)).toEqual([dropped, later]);
  });

  test.each(["failed", "replayed"] as const)(
    "finds one in a gap while ids are ahead of the clock: %s",
    async (kind) => {
      const [event, next] = [idAt(bootMs + hourMs), idAt(bootMs + hourMs + 1)];
      const records: HistoryRecord[] = [];
      const history: History = {
        newestId: () => Promise.resolve(next),
        async *read() {
          yield records.splice(0);
        },
      };
      let now = bootMs;
      const start = { afterId: event, fromMs: bootMs, isNow: true };
      const { missed, offer, take } = begin(history, { kinds: [kind], start, serverNow: () => now });
      const end = (lastAttemptMs: number) => ({
        ...recordOf(event),
        replayGroupId: "label",
        attempts: 1,
        lastAttemptMs,
      });
      // As the stream opens, and again after a restart of the server.
      missed();
      const first = take(1);
      offer("replay.progressed", { eventIds: [next], queuedAt: formatIso(now), replayGroupId: "other" });
      offer("delivery.attempted", { eventId: next, startedAt: formatIso(now) });
      offer("delivery.finished", { eventId: next, targetWebhook: "", attempts: 1, state: "FAILED" });
      expect(await first).toEqual([next]);
      now += 120_000;
      records.push(end(now - 60_000));
      missed();
      expect(await take(1)).toEqual([event]);
    },
  );
});

describe("where to start another time", () => {
  const start = { afterId: idAt(bootMs - 1_000), fromMs: bootMs, isNow: false };
  const pastMs = 15_000;

  function beginEnds(history: History = storeOf([])) {
    const begun = begin(history, { kinds: ["delivered"], start });
    const deliver = (seconds: number): Item => {
      const atMs = bootMs + seconds * 1_000;
      const eventId = idAt(atMs);
      begun.offer("delivery.attempted", { eventId, startedAt: formatIso(atMs) });
      begun.offer("delivery.finished", { eventId, targetWebhook: "", attempts: 1, state: "DELIVERED" });
      return { kind: "delivered", eventId, webhook: "", atMs };
    };
    const resumeSeconds = (...unforwarded: Item[]) => (begun.resumeFromMs(unforwarded) - bootMs + pastMs) / 1_000;
    return { ...begun, deliver, resumeSeconds };
  }

  test("is no earlier than the start", () => {
    expect(beginEnds().resumeFromMs([])).toBe(bootMs);
  });

  test("is the length of an attempt before what was taken last, or has not been forwarded", async () => {
    const { deliver, take, resumeSeconds } = beginEnds();
    const first = deliver(100);
    await take(1);
    expect(resumeSeconds()).toBe(100);
    deliver(200);
    expect(resumeSeconds()).toBe(100);
    await take(1);
    expect([resumeSeconds(), resumeSeconds(first)]).toEqual([200, 100]);
  });

  test("is before what waits, if that is from earlier than what was taken", async () => {
    const { deliver, take, resumeSeconds } = beginEnds();
    deliver(200);
    await take(1);
    deliver(150);
    expect(resumeSeconds()).toBe(150);
  });

  test("is before a gap, until that has been read from the history", async () => {
    const read = Promise.withResolvers<void>();
    const stored = idAt(bootMs + 300_000);
    const history: History = {
      newestId: () => read.promise.then(() => stored),
      async *read() {
        yield [{ ...recordOf(stored), lastAttemptMs: bootMs + 300_000 }];
      },
    };
    const { deliver, missed, take, resumeSeconds } = beginEnds(history);
    deliver(200);
    await take(1);
    missed();
    expect(resumeSeconds()).toBe(140);
    const taken = take(1);
    deliver(400);
    expect(resumeSeconds()).toBe(140);
    read.resolve();
    expect(await taken).toEqual([stored]);
    await take(1);
    expect(resumeSeconds()).toBe(400);
  });
});

describe("a source of replays", () => {
  const eventId = idAt(bootMs);
  const message = (queuedMs: number, replayGroupId = "label") => ({
    eventIds: [eventId],
    queuedAt: formatIso(queuedMs),
    replayGroupId,
  });

  /** The event has been replayed, under a label, and was attempted at a time. */
  const storeWith = (lastAttemptMs: number, replayGroupId: string | null = "label"): History => ({
    newestId: () => Promise.resolve(eventId),
    async *read() {
      yield [{ ...recordOf(eventId), replayGroupId, lastAttemptMs }];
    },
  });

  test("gives an event for each time that it is replayed, whatever the label", async () => {
    const { offer, take } = begin(storeOf([]), { kinds: ["replayed"] });
    offer("replay.progressed", { status: "waiting" });
    offer("replay.progressed", message(bootMs + 1));
    offer("replay.progressed", message(bootMs + 2));
    offer("replay.progressed", message(bootMs + 3, "other"));
    offer("event.accepted", { eventId });
    expect(await take(3)).toEqual([eventId, eventId, eventId]);
  });

  test.each([
    ["in a gap, it is found in the history, and told late by the stream, too", false],
    ["before a gap, it is known when the history tells of it", true],
  ])("gives it once: %s", async (_when, isToldBefore) => {
    const { offer, missed, take } = begin(storeWith(bootMs + 20), { kinds: ["replayed"] });
    if (isToldBefore) {
      offer("replay.progressed", message(bootMs + 10));
      expect(await take(1)).toEqual([eventId]);
    }
    missed();
    const again = take(isToldBefore ? 1 : 2);
    await new Promise((resolve) => setImmediate(resolve));
    if (!isToldBefore) offer("replay.progressed", message(bootMs + 10));
    offer("replay.progressed", message(bootMs + 30));
    expect(await again).toEqual(isToldBefore ? [eventId] : [eventId, eventId]);
  });

  test.each([
    ["what was never replayed", bootMs + 20, null],
    ["what was replayed before", bootMs - 60_000, "label"],
  ])("does not take from the history %s", async (_what, lastAttemptMs, label) => {
    const { offer, missed, take } = begin(storeWith(lastAttemptMs, label), { kinds: ["replayed"] });
    missed();
    const taken = take(1);
    await new Promise((resolve) => setImmediate(resolve));
    offer("replay.progressed", message(bootMs + 30, "later"));
    expect(await taken).toEqual([eventId]);
  });
});

describe("a history", () => {
  /** The API over records of a list, newest first. */
  function serve(ids: readonly string[]) {
    const asked: { rows: number; page: number }[] = [];
    const history = createHistory({
      get(path) {
        const query = new URL(path, "http://x").searchParams;
        // A page of large payloads would take minutes over a slow link.
        expect(query.get("payload")).toBe("false");
        const [size, page] = [Number(query.get("size")), Number(query.get("page") ?? 0)];
        const [from, to] = [Date.parse(query.get("from") ?? ""), Date.parse(query.get("to") ?? "")];
        const found = ids.filter((id) => msOf(id) >= from && msOf(id) <= to).reverse();
        const rows = found.slice(page * size, (page + 1) * size);
        asked.push({ rows: rows.length, page });
        return Promise.resolve({
          events: rows.map((eventId) => ({ eventId, targetWebhook: "", attempts: 0, lastAttemptAt: null })),
          total: Math.min(found.length, 10_000),
        });
      },
    });
    return { history, asked };
  }

  async function readAll(history: History, fromMs: number, untilMs: number) {
    const windows: string[][] = [];
    for await (const records of history.read("/v1/events", fromMs, untilMs)) {
      windows.push(records.map(({ eventId }) => eventId));
    }
    return windows;
  }

  test("reads every record of a time, oldest first, each once, however they are spread", async () => {
    const gaps = fc.array(fc.tuple(fc.nat(100_000), fc.integer({ min: 1, max: 700 })), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(gaps, fc.nat(1000), async (clusters, before) => {
        let ms = bootMs;
        const ids = clusters.flatMap(([gap, n]) => {
          ms += gap + 1;
          return Array.from({ length: n }, (_, i) => idAt(ms, i));
        });
        const { history } = serve(ids);
        expect((await readAll(history, bootMs - before, ms)).flat()).toEqual(ids);
      }),
      { numRuns: 60 },
    );
  });

  test("holds no more than a page at a time, unless a millisecond has more", async () => {
    const spread = Array.from({ length: 12_000 }, (_, i) => idAt(bootMs + i * 7));
    const crowded = Array.from({ length: 900 }, (_, i) => idAt(bootMs + 100_000, i));
    const { history, asked } = serve([...spread, ...crowded]);
    const windows = await readAll(history, bootMs, bootMs + 200_000);
    expect(windows.flat()).toHaveLength(12_900);
    expect(windows.filter(({ length }) => length > 200)).toEqual([crowded]);
    expect(asked.filter(({ page }) => page > 0)).toHaveLength(4);
    // Fewer than two questions for each page of what there is: the width of the windows is found quickly.
    expect(asked.length).toBeLessThan(2 * (12_900 / 200) + 40);
  });

  test("misses none when more come into the newest millisecond while it is read", async () => {
    const ids = Array.from({ length: 600 }, (_, i) => idAt(bootMs, i));
    const { history } = serve(ids);
    const before = [...ids];
    const reading = readAll(history, bootMs, bootMs);
    ids.push(idAt(bootMs, 600));
    await Promise.resolve();
    ids.push(...Array.from({ length: 150 }, (_, i) => idAt(bootMs, 601 + i)));
    const found = new Set((await reading).flat());
    expect(before.filter((id) => !found.has(id))).toEqual([]);
  });

  test("has nothing before the first event", async () => {
    const { history } = serve([]);
    expect(await history.newestId()).toBeNull();
    expect(await readAll(history, 0, bootMs)).toEqual([]);
  });
});
