import { ingestedAtOf, parseEventId } from "../../lib/id.ts";
import type { History, HistoryRecord } from "./history.ts";
import type { Kind, Start } from "./options.ts";
import { createRecent, type Recent } from "./recent.ts";

/** One thing to forward. */
export interface Item {
  readonly kind: Kind;
  readonly eventId: string;
  /** The URL of the webhook whose delivery has ended; null: not the end of one. */
  readonly webhook: string | null;
  /** When it happened, or a little before, in ms since the Unix epoch. */
  readonly atMs: number;
}

type Message = Readonly<Record<string, unknown>>;

/**
 * Everything to be forwarded, once each and without gaps, from two paths that overlap:
 *
 *   stream ──offer──▶ waiting (ids only, bounded) ──┐
 *     │ a gap, or no room                           ├──▶ items ──▶ the consumer, at its own pace
 *     └──missed──▶ history, from the last one on ───┘
 *
 * Nothing runs ahead of the consumer: when there is no room, the stream's messages are dropped, and read from the history
 * when their turn comes. So a slow receiver costs no memory, however long it stays slow.
 */
export interface Source {
  /** A message of the stream. */
  offer(kind: string, message: Message): void;
  /** There is a gap in the stream before its next message. The stream must already be open. */
  missed(): void;
  /** Never ends by itself. */
  items(signal: AbortSignal): AsyncGenerator<Item>;
  /**
   * From when on to start another time, so that nothing is left out. Some of what was forwarded comes again.
   * @param unforwarded items that were taken and have come to nothing
   */
  resumeFromMs(unforwarded: readonly Item[]): number;
}

export interface SourceDeps {
  kinds: ReadonlySet<Kind>;
  history: History;
  start: Start;
  /** The time by the server's clock, as it ran when the session was opened: if it is set back later, this is ahead of it. */
  serverNow(): number;
}

/** How many messages may wait; an id takes some 100 bytes. */
const mostWaiting = 10_000;
/**
 * Ids are assigned in order and announced almost in order: those of one commit may swap places, and several servers announce
 * every 50 ms. So when there was no room, the history is re-read from a little before the newest one. Only a little: that
 * happens again and again under load, and any more would be thousands of events each time.
 */
const overlapMs = 500;
/**
 * A server that dies leaves its last moments unannounced, and streams are told only once another has taken over: its lease of
 * 20 s has run out, and the whole queue has been read, at half a second for a million deliveries. Others announce meanwhile.
 */
const unannouncedMs = 60_000;
/** An attempt takes 10 s at most, and its end is reported by the time of its start. */
const attemptOverlapMs = 15_000;
/**
 * How long before its end an event may have been accepted: the default schedule takes 34 hours, and a receiver may ask for
 * one more day. If an even older event ends within a gap of the stream, that is not found.
 */
const longestRunMs = 3 * 24 * 60 * 60_000;

/**
 * How long replays are remembered. The history reports a replay by its latest attempt; one that is retried after longer than
 * this, and within a gap, is forwarded twice.
 */
const replayOverlapMs = 60 * 60_000;

interface Waiting extends Item {
  readonly key: string;
}

export function createSource({ kinds, history, start, serverNow }: SourceDeps): Source {
  const waiting: Waiting[] = [];
  // What is waiting may turn up in the history first.
  const neededSince = () => waiting[0]?.atMs ?? Number.POSITIVE_INFINITY;
  const accepted = createRecent({ keepMs: unannouncedMs, neededSince, startMs: ingestedAtOf(start.afterId) });
  const finished = createRecent({ keepMs: unannouncedMs + attemptOverlapMs, neededSince, startMs: start.fromMs });
  const replayed = createRecent({ keepMs: replayOverlapMs, neededSince, startMs: start.fromMs });
  /** How far before what has been seen the history has to be re-read; null: there is no gap. */
  let gapOverlapMs: number | null = null;
  /** How far back a reading of the history that is under way may find something new; null: none is. */
  let readingFromMs: number | null = null;
  let latestAttemptMs = start.fromMs;
  let wake = () => {};

  function offer(kind: string, message: Message): void {
    if (kind === "replay.progressed") {
      for (const item of replayedEvents(message)) push(item);
      return;
    }
    // Everything here goes by ids.
    if (parseEventId(String(message.eventId)) === null) return;
    // The message about the end of a delivery carries no time; the one about its last attempt came just before.
    if (kind === "delivery.attempted") latestAttemptMs = Date.parse(String(message.startedAt));
    if (kind === "event.accepted") push(newEvent(message));
    else if (kind === "delivery.finished") push(anEnd(message));
  }

  function push(item: Waiting): void {
    if (gapOverlapMs !== null || !kinds.has(item.kind)) return;
    if (waiting.length < mostWaiting) {
      waiting.push(item);
      wake();
    } else leaveGap(overlapMs);
  }

  const newEvent = ({ eventId }: Message) => acceptedItem(String(eventId));

  const anEnd = ({ eventId, targetWebhook, attempts, state }: Message): Waiting => ({
    kind: state === "DELIVERED" ? "delivered" : "failed",
    eventId: String(eventId),
    webhook: String(targetWebhook),
    key: keyOf(String(eventId), String(targetWebhook), Number(attempts)),
    atMs: latestAttemptMs,
  });

  function leaveGap(overlap: number): void {
    gapOverlapMs = Math.max(gapOverlapMs ?? 0, overlap);
    waiting.length = 0;
    wake();
  }

  /** How far the stream has told of everything, of whatever kind: it is in order. Ids may be ahead of the clock. */
  function throughMs(): number {
    const times = [...kinds].map((kind) => recentOf(kind).throughMs);
    return Math.min(Math.max(...times), serverNow());
  }

  const recentOf = (kind: Kind): Recent => (kind === "accepted" ? accepted : kind === "replayed" ? replayed : finished);

  /** Whether the item is new; after the call it no longer is. */
  function take(item: Waiting, by: "stream" | "history"): boolean {
    const { kind, eventId, key, atMs } = item;
    if (kind === "replayed") return takeReplayed(item, by);
    const recent = recentOf(kind);
    // The history is in the order of the events, which says nothing about the ends still to be read.
    if (by === "stream" || kind === "accepted") recent.advance(atMs);
    if (recent.has(key) || (kind === "accepted" && eventId <= start.afterId)) return false;
    recent.add(key, atMs);
    return true;
  }

  /**
   * The stream reports a replay with the time it was queued, and the history with that of its latest attempt. The only thing
   * both report is its label, under which the same event may be replayed again.
   */
  function takeReplayed({ key, atMs }: Waiting, by: "stream" | "history"): boolean {
    if (by === "stream") replayed.advance(atMs);
    const knownMs = replayed.timeOf(key);
    if (knownMs !== undefined && (by === "history" || atMs <= knownMs)) return false;
    replayed.add(key, atMs);
    return true;
  }

  async function* missedItems(withEnds: boolean, overlap: number): AsyncGenerator<Waiting> {
    const newest = await history.newestId();
    if (newest === null) return;
    const untilMs = ingestedAtOf(newest);
    const acceptedFromMs = Math.max(ingestedAtOf(start.afterId), accepted.throughMs - overlap);
    const finishedFromMs = Math.max(start.fromMs, finished.throughMs - overlap - attemptOverlapMs);
    const replayedFromMs = Math.max(start.fromMs, replayed.throughMs - overlap - attemptOverlapMs);
    // What ends while this is read is the stream's to tell. If that has another gap, the next reading goes back to here. Ends
    // have the clock's time, which ids may be ahead of: they increase even when the clock is set back.
    const endsThroughMs = Math.min(untilMs, serverNow());
    finished.advance(endsThroughMs);
    replayed.advance(endsThroughMs);
    if (kinds.has("accepted")) {
      for await (const records of history.read("/v1/events", acceptedFromMs, untilMs)) {
        // An event has a record for each of its webhooks.
        for (const { eventId } of records) yield acceptedItem(eventId);
      }
    }
    if (!withEnds) return;
    if (kinds.has("replayed")) {
      for await (const records of history.read("/v1/events", replayedFromMs - longestRunMs, untilMs)) {
        for (const { eventId, replayGroupId, lastAttemptMs } of records) {
          if (replayGroupId === null || lastAttemptMs === null || lastAttemptMs < replayedFromMs) continue;
          yield replayedItem(eventId, replayGroupId, lastAttemptMs);
        }
      }
    }
    for (const [kind, list] of ends) {
      if (!kinds.has(kind)) continue;
      for await (const records of history.read(list, finishedFromMs - longestRunMs, untilMs)) {
        for (const record of records) {
          const { eventId, targetWebhook: webhook, lastAttemptMs } = record;
          if (lastAttemptMs === null || lastAttemptMs < finishedFromMs) continue;
          yield { kind, eventId, webhook, key: keyOfRecord(record), atMs: lastAttemptMs };
        }
      }
    }
  }

  return {
    offer,
    missed: () => leaveGap(unannouncedMs),
    async *items(signal) {
      let withEnds = !start.isNow;
      signal.addEventListener("abort", () => wake());
      while (!signal.aborted) {
        const next = waiting.shift();
        if (next !== undefined) {
          if (take(next, "stream")) yield next;
        } else if (gapOverlapMs !== null) {
          const overlap = gapOverlapMs;
          readingFromMs = throughMs() - overlap;
          // From here on, the stream's messages wait behind what was missed; if there is no room, that is another gap.
          gapOverlapMs = null;
          for await (const item of missedItems(withEnds, overlap)) if (take(item, "history")) yield item;
          readingFromMs = null;
          withEnds = true;
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
    resumeFromMs(unforwarded) {
      const unreadMs = readingFromMs ?? throughMs() - (gapOverlapMs ?? 0);
      const times = [...unforwarded, ...waiting].map(({ atMs }) => atMs);
      return Math.max(start.fromMs, Math.min(unreadMs, ...times) - attemptOverlapMs);
    },
  };
}

const ends = [
  ["delivered", "/v1/events/state/DELIVERED"],
  ["failed", "/v1/events/state/FAILED"],
] as const;

/** The events that a message about a replay reports as queued. */
function replayedEvents({ eventIds, queuedAt, replayGroupId }: Message): Waiting[] {
  if (!Array.isArray(eventIds)) return [];
  const ids = eventIds.map(String).filter((id) => parseEventId(id) !== null);
  const atMs = Date.parse(String(queuedAt));
  return ids.map((eventId) => replayedItem(eventId, String(replayGroupId), atMs));
}

const replayedItem = (eventId: string, replayGroupId: string, atMs: number): Waiting => ({
  kind: "replayed",
  eventId,
  webhook: null,
  key: `${eventId} ${replayGroupId}`,
  atMs,
});

const acceptedItem = (eventId: string): Waiting => ({
  kind: "accepted",
  eventId,
  webhook: null,
  key: eventId,
  atMs: ingestedAtOf(eventId),
});

/** An event may end several times: once per webhook, and once more for each replay. */
const keyOf = (eventId: string, targetWebhook: string, attempts: number) => `${eventId} ${attempts} ${targetWebhook}`;
const keyOfRecord = ({ eventId, targetWebhook, attempts }: HistoryRecord) => keyOf(eventId, targetWebhook, attempts);
