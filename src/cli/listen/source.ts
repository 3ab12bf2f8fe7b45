import { ingestedAtMs, parseEventId } from "../../lib/id.ts";
import type { History, HistoryRecord } from "./history.ts";
import type { Kind, Start } from "./options.ts";
import { createRecent, type Recent } from "./recent.ts";

/** One thing to forward. */
export interface Item {
  readonly kind: Kind;
  readonly eventId: string;
}

type Message = Readonly<Record<string, unknown>>;

/**
 * What is to be forwarded, each once and without a gap, from two ways that overlap:
 *
 *   stream ──offer──▶ waiting (ids only, bounded) ──┐
 *     │ a gap, or no room                           ├──▶ items ──▶ whoever takes them, at his own pace
 *     └──missed──▶ history, from the last one on ───┘
 *
 * Nobody is ahead of who takes the items: without a place for them the stream's messages are dropped, and read from the
 * history when their turn has come. So a slow receiver costs no memory, however long it is slow.
 */
export interface Source {
  /** A message of the stream. */
  offer(kind: string, message: Message): void;
  /** The stream has a gap before what it says from now on. It has to be open by now. */
  missed(): void;
  /** Never ends by itself. */
  items(signal: AbortSignal): AsyncGenerator<Item>;
}

export interface SourceDeps {
  kinds: ReadonlySet<Kind>;
  history: History;
  start: Start;
}

/** Messages that may wait; an id takes some 100 bytes. */
const mostWaiting = 10_000;
/**
 * Ids are given in order, and announced almost in order: those of one commit may swap places. So the history is read
 * again from a little before the newest one. Not from long before: under load that would be thousands.
 */
const overlapMs = 500;
/** An attempt takes 10 s at most, and the end of one is told by the time of its start. */
const attemptOverlapMs = 15_000;
/**
 * How long before its end an event may have been accepted: the default schedule takes 34 hours, and a receiver may ask for
 * a day more. Ends of still older ones that fall into a gap of the stream are not found.
 */
const longestRunMs = 3 * 24 * 60 * 60_000;

/**
 * How long replays are remembered. The history tells of one by its latest attempt; one that is retried after so long, and
 * within a gap, comes twice.
 */
const replayOverlapMs = 60 * 60_000;

interface Waiting extends Item {
  readonly key: string;
  readonly atMs: number;
}

export function createSource({ kinds, history, start }: SourceDeps): Source {
  const waiting: Waiting[] = [];
  // What waits may be met in the history first.
  const neededSince = () => waiting[0]?.atMs ?? Number.POSITIVE_INFINITY;
  const accepted = createRecent({ keepMs: overlapMs, neededSince, startMs: ingestedAt(start.afterId) });
  const finished = createRecent({ keepMs: attemptOverlapMs, neededSince, startMs: start.fromMs });
  const replayed = createRecent({ keepMs: replayOverlapMs, neededSince, startMs: start.fromMs });
  let hasGap = false;
  let latestAttemptMs = start.fromMs;
  let wake = () => {};

  function offer(kind: string, message: Message): void {
    if (kind === "replay.progressed") {
      for (const item of replayedEvents(message)) push(item);
      return;
    }
    // Ids are what everything here goes by.
    if (parseEventId(String(message.eventId)) === null) return;
    // The message about the end of a delivery has no time; the one about its last attempt came just before.
    if (kind === "delivery.attempted") latestAttemptMs = Date.parse(String(message.startedAt));
    if (kind === "event.accepted") push(newEvent(message));
    else if (kind === "delivery.finished") push(anEnd(message));
  }

  function push(item: Waiting): void {
    if (hasGap || !kinds.has(item.kind)) return;
    if (waiting.length < mostWaiting) {
      waiting.push(item);
      wake();
    } else missed();
  }

  const newEvent = ({ eventId }: Message) => acceptedItem(String(eventId));

  const anEnd = ({ eventId, targetWebhook, attempts, state }: Message): Waiting => ({
    kind: state === "DELIVERED" ? "delivered" : "failed",
    eventId: String(eventId),
    key: keyOf(String(eventId), String(targetWebhook), Number(attempts)),
    atMs: latestAttemptMs,
  });

  function missed(): void {
    hasGap = true;
    waiting.length = 0;
    wake();
  }

  /** Whether it is new; from then on it is not. */
  function take(item: Waiting, by: "stream" | "history"): boolean {
    const { kind, eventId, key, atMs } = item;
    if (kind === "replayed") return takeReplayed(item, by);
    const recent: Recent = kind === "accepted" ? accepted : finished;
    if (recent.has(key) || (kind === "accepted" && eventId <= start.afterId)) return false;
    recent.add(key, atMs);
    return true;
  }

  /**
   * A replay is told by the stream with the time when it was queued, and by the history with that of its latest attempt; all
   * that both say of it is its label, under which the same event may be replayed again.
   */
  function takeReplayed({ key, atMs }: Waiting, by: "stream" | "history"): boolean {
    const knownMs = replayed.timeOf(key);
    if (knownMs !== undefined && (by === "history" || atMs <= knownMs)) return false;
    replayed.add(key, atMs);
    return true;
  }

  async function* missedItems(withEnds: boolean): AsyncGenerator<Waiting> {
    const newest = await history.newestId();
    if (newest === null) return;
    const untilMs = ingestedAt(newest);
    if (kinds.has("accepted")) {
      const fromMs = Math.max(ingestedAt(start.afterId), accepted.latestMs - overlapMs);
      for await (const records of history.read("/v1/events", fromMs, untilMs)) {
        // An event has a record for each of its webhooks.
        for (const { eventId } of records) yield acceptedItem(eventId);
      }
    }
    if (withEnds && kinds.has("replayed")) {
      const fromMs = Math.max(start.fromMs, replayed.latestMs - attemptOverlapMs);
      for await (const records of history.read("/v1/events", fromMs - longestRunMs, untilMs)) {
        for (const { eventId, replayGroupId, lastAttemptMs } of records) {
          if (replayGroupId === null || lastAttemptMs === null || lastAttemptMs < fromMs) continue;
          yield { kind: "replayed", eventId, key: `${eventId} ${replayGroupId}`, atMs: lastAttemptMs };
        }
      }
    }
    const fromMs = Math.max(start.fromMs, finished.latestMs - attemptOverlapMs);
    for (const [kind, list] of ends) {
      if (!withEnds || !kinds.has(kind)) continue;
      for await (const records of history.read(list, fromMs - longestRunMs, untilMs)) {
        for (const record of records) {
          const { eventId, lastAttemptMs } = record;
          if (lastAttemptMs === null || lastAttemptMs < fromMs) continue;
          yield { kind, eventId, key: keyOfRecord(record), atMs: lastAttemptMs };
        }
      }
    }
  }

  return {
    offer,
    missed,
    async *items(signal) {
      let withEnds = !start.isNow;
      signal.addEventListener("abort", () => wake());
      while (!signal.aborted) {
        const next = waiting.shift();
        if (next !== undefined) {
          if (take(next, "stream")) yield next;
        } else if (hasGap) {
          // What the stream says from now on waits behind what it has missed; if there is no room, that is a gap again.
          hasGap = false;
          for await (const item of missedItems(withEnds)) if (take(item, "history")) yield item;
          withEnds = true;
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
}

const ends = [
  ["delivered", "/v1/events/state/DELIVERED"],
  ["failed", "/v1/events/state/FAILED"],
] as const;

/** Of what a message about a replay says to be queued by now. */
function replayedEvents({ eventIds, queuedAt, replayGroupId }: Message): Waiting[] {
  if (!Array.isArray(eventIds)) return [];
  const ids = eventIds.map(String).filter((id) => parseEventId(id) !== null);
  const atMs = Date.parse(String(queuedAt));
  return ids.map((eventId) => ({ kind: "replayed", eventId, key: `${eventId} ${replayGroupId}`, atMs }));
}

const acceptedItem = (eventId: string): Waiting => ({
  kind: "accepted",
  eventId,
  key: eventId,
  atMs: ingestedAt(eventId),
});

/** An event may end several times: for each webhook, and once more for each replay. */
const keyOf = (eventId: string, targetWebhook: string, attempts: number) => `${eventId} ${attempts} ${targetWebhook}`;
const keyOfRecord = ({ eventId, targetWebhook, attempts }: HistoryRecord) => keyOf(eventId, targetWebhook, attempts);

function ingestedAt(eventId: string): number {
  const event = parseEventId(eventId);
  return event === null ? 0 : ingestedAtMs(event.seq);
}
