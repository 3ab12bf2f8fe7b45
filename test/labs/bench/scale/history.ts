import { encodeEventId, firstSeqAt } from "../../../../src/lib/id.ts";
import { createRandom } from "../../../../src/lib/random.ts";

/**
 * The history that a seeded database holds: a pure function of its size and end, so that a test can let the real store
 * write the same one, and a measurement knows its ids without reading them.
 *
 * One event every 250 ms, so more of them reach further back: ten million are 29 days. Half belong to one large tenant; of
 * the others a few are active in each minute, those with low numbers more often. The last tenth came while nothing could
 * be delivered, and is pending.
 */
export const tenants = 1_000;
/** The last one, so that the others can carry the load while it is deleted. */
export const largestTenant = tenants - 1;

const everyMs = 250;
/** A little above a half, so that the page that begins at half of all events is there. */
const largestShare = 0.52;
const activeInMinute = 8;
const minuteMs = 60_000;
const pendingShare = 0.1;
const failedShare = 0.02;
const retriedShare = 0.03;

export const statusOfSuccess = 204;
const statusOfFailure = 410;
const statusOfRetry = 503;
/** From one attempt to the next: the first entry of the default schedule. */
const retryDelayMs = 5_000;

export type Fate = "delivered" | "retried" | "failed" | "pending";

export interface PastEvent {
  /** When it was accepted, ms since the Unix epoch. */
  at: number;
  tenant: number;
  fate: Fate;
  /** From the start of an attempt to its answer. */
  durationMs: number;
}

export interface History {
  readonly events: number;
  /** When the first event came. */
  readonly startsAt: number;
  readonly firstPending: number;
  /** All of them, oldest first. The object is the same each time. */
  walk(): Generator<PastEvent>;
  seqOf(event: number): number;
  tailOf(event: number): Uint8Array;
  idOf(event: number): string;
  /** When this event came. */
  timeOf(event: number): number;
}

/** @param endsAt the last event came just before, ms since the Unix epoch */
export function createHistory(events: number, endsAt: number): History {
  const startsAt = endsAt - events * everyMs;
  const firstPending = events - Math.floor(events * pendingShare);
  const timeOf = (event: number) => startsAt + event * everyMs;
  const seqOf = (event: number) => firstSeqAt(timeOf(event));

  /** Any eight bytes will do, as long as they are no regular ones. */
  function tailOf(event: number): Uint8Array {
    const tail = new Uint8Array(8);
    const view = new DataView(tail.buffer);
    view.setUint32(0, Math.imul(event + 1, 0x9e3779b1) >>> 0);
    view.setUint32(4, Math.imul(event + 1, 0x85ebca6b) >>> 0);
    tail[0] = 0x80 | ((tail[0] ?? 0) & 0x3f);
    return tail;
  }

  function* walk(): Generator<PastEvent> {
    const random = createRandom(events);
    const event: PastEvent = { at: 0, tenant: 0, fate: "delivered", durationMs: 0 };
    let minute = -1;
    let active: number[] = [];
    for (let i = 0; i < events; i++) {
      event.at = timeOf(i);
      const minuteNow = Math.floor(event.at / minuteMs);
      if (minuteNow !== minute) {
        minute = minuteNow;
        active = Array.from({ length: activeInMinute }, () => Math.floor(largestTenant * random.next() ** 2));
      }
      event.tenant = random.chance(largestShare) ? largestTenant : (active[random.between(0, activeInMinute - 1)] ?? 0);
      event.durationMs = random.between(3, 60);
      const lot = random.next();
      if (i >= firstPending) event.fate = "pending";
      else if (lot < failedShare) event.fate = "failed";
      else event.fate = lot < failedShare + retriedShare ? "retried" : "delivered";
      yield event;
    }
  }

  return {
    events,
    startsAt,
    firstPending,
    walk,
    seqOf,
    tailOf,
    idOf: (i) => encodeEventId(seqOf(i), tailOf(i)),
    timeOf,
  };
}

/** The n-th attempt of an event, from 0. */
export interface PastAttempt {
  startedAt: number;
  endedAt: number;
  statusCode: number;
  isLast: boolean;
}

export function attemptsOf({ at, fate, durationMs }: PastEvent): PastAttempt[] {
  if (fate === "pending") return [];
  const attempt = (startedAt: number, statusCode: number, isLast: boolean): PastAttempt => ({
    startedAt,
    endedAt: startedAt + durationMs,
    statusCode,
    isLast,
  });
  if (fate === "failed") return [attempt(at, statusOfFailure, true)];
  if (fate === "delivered") return [attempt(at, statusOfSuccess, true)];
  return [attempt(at, statusOfRetry, false), attempt(at + durationMs + retryDelayMs, statusOfSuccess, true)];
}

const payloadBytes = 300;
const numberWidth = 9;
const payloadStart = '{"event_type":"order.updated","n":"';
const payloadRest = '","order":{"currency":"NGN","total":12.50,"lines":3},"note":"';

/** 300 bytes that say which event it is. The buffer is the same each time. */
export function createPayloads(): (event: number) => Buffer {
  const fixed = `${payloadStart}${"0".repeat(numberWidth)}${payloadRest}`;
  const bytes = Buffer.from(`${fixed}${"x".repeat(payloadBytes - fixed.length - 2)}"}`);
  return (event) => {
    bytes.write(String(event).padStart(numberWidth, "0"), payloadStart.length, "latin1");
    return bytes;
  };
}
