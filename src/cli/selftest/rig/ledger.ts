import { createHash } from "node:crypto";
import type { Account } from "./account.ts";

/** An event as its sender knows it. */
export interface SentEvent {
  readonly request: SentRequest;
  /** Learnt from the answer or the first delivery, whichever comes first; null until then. */
  eventId: string | null;
}

/** A request to ingest events: all of them are accepted, or none. */
export interface SentRequest {
  readonly account: Account;
  readonly events: readonly SentEvent[];
  /** The request exactly as sent over the wire. */
  readonly bytes: Buffer;
  readonly idempotencyKey: string | null;
  /** `open`: the server went away before it answered, so the events may be stored or not. */
  fate: "open" | "acknowledged" | "refused";
}

/** All deliveries of one event to one webhook. */
export interface RecordTally {
  arrivals: number;
  /** Deliveries that have no answer yet and whose connections are still open. */
  underWay: number;
  /** Deliveries that got a final answer, by replay label ("" for none). */
  readonly concluded: Map<string, { times: number; life: number }>;
}

/**
 * The books of a self-test: what was sent and acknowledged, and what has arrived. Every answer and every delivery is checked
 * against them as it comes; what can only be known at the end is in `audit.ts`.
 */
export interface Ledger {
  /** Which start of the server is running: whatever arrives is attributed to it. */
  life: number;
  /** A server was frozen for longer than its lease, or may still complete what it had begun before. */
  mayOverlap: boolean;
  /** A server was frozen for so long that its attempts may have timed out, or its lease run out. */
  hasStoodStill: boolean;
  readonly figures: LedgerFigures;
  /** By webhook path and event id, see `tallyKey`. */
  readonly tallies: ReadonlyMap<string, RecordTally>;
  readonly requests: readonly SentRequest[];
  /** Deliveries that arrived again despite a final answer, by the life in which they had arrived before. */
  readonly duplicatesByLife: ReadonlyMap<number, number>;
  add(account: Account, payloads: readonly Buffer[], bytes: Buffer, idempotencyKey: string | null): SentRequest;
  acknowledged(request: SentRequest, eventIds: readonly string[]): void;
  refused(request: SentRequest): void;
  /**
   * Notes a delivery that is whole and genuine, before it is answered.
   * @returns a function to call once it has been answered
   */
  received(delivery: ReceivedEvent, status: number): () => void;
  tally(path: string, eventId: string): RecordTally;
  eventIdOf(payload: Uint8Array): string | null;
  /** Resolves when fewer than `count` deliveries of the account's acknowledged events are on their way. */
  whenOnTheWayBelow(account: Account, count: number): Promise<void>;
  /** Tallies of these accounts' acknowledged deliveries that have no final answer. */
  onTheWay(accounts: readonly Account[]): RecordTally[];
  fault(text: string): void;
  readonly faults: Faults;
}

export interface LedgerFigures {
  sent: number;
  acknowledged: number;
  refused: number;
  /** Requests that had been acknowledged, were repeated under their idempotency key, and got the same ids. */
  repeatedAlike: number;
  arrivals: number;
  /** Answered with 2xx. */
  delivered: number;
  duplicates: number;
  /** Attempts that began while another attempt of the same delivery was under way. */
  overlaps: number;
}

export const createLedgerFigures = (): LedgerFigures => ({
  sent: 0,
  acknowledged: 0,
  refused: 0,
  repeatedAlike: 0,
  arrivals: 0,
  delivered: 0,
  duplicates: 0,
  overlaps: 0,
});

export interface ReceivedEvent {
  readonly account: Account;
  readonly path: string;
  readonly eventId: string;
  readonly payload: Uint8Array;
  /** "" when it is not a replay. */
  readonly label: string;
}

/** What does not hold: all faults are counted, the first few are printed. */
export interface Faults {
  count: number;
  readonly told: string[];
}

/** A final answer: nothing is sent again after it (specification, "Acknowledgement and retry rules"). */
export const isForGood = (status: number) =>
  isAcknowledgement(status) || (status >= 400 && status < 500 && status !== 429);
const isAcknowledgement = (status: number) => status >= 200 && status < 300;

export const toldFaults = 20;

export const createFaults = (): Faults => ({ count: 0, told: [] });

export function noteFault(faults: Faults, text: string): void {
  faults.count += 1;
  if (faults.told.length < toldFaults) faults.told.push(text);
}

export const tallyKey = (path: string, eventId: string): string => `${path} ${eventId}`;

const hashOf = (payload: Uint8Array) => createHash("sha256").update(payload).digest("base64");

export function createLedger(faults: Faults): Ledger {
  const byHash = new Map<string, SentEvent>();
  const tallies = new Map<string, RecordTally>();
  const duplicatesByLife = new Map<number, number>();
  const requests: SentRequest[] = [];
  const waiting = new Set<() => void>();
  const onTheWay = new Map<Account, number>();
  const figures = createLedgerFigures();
  const fault = (text: string) => noteFault(faults, text);

  function tally(path: string, eventId: string): RecordTally {
    const key = tallyKey(path, eventId);
    const found = tallies.get(key) ?? { arrivals: 0, underWay: 0, concluded: new Map() };
    tallies.set(key, found);
    return found;
  }

  const onTheWayOf = (account: Account) => onTheWay.get(account) ?? 0;

  function move(account: Account, by: number): void {
    onTheWay.set(account, onTheWayOf(account) + by);
    if (by < 0) for (const look of [...waiting]) look();
  }

  /** One payload has one id, wherever it is first learnt from. */
  function name(event: SentEvent, eventId: string, source: string): boolean {
    event.eventId ??= eventId;
    if (event.eventId === eventId) return true;
    fault(`an event of ${event.request.account.id} is ${event.eventId} and, by ${source}, ${eventId} too`);
    return false;
  }

  function acknowledged(request: SentRequest, eventIds: readonly string[]): void {
    if (eventIds.length !== request.events.length) {
      fault(`${request.events.length} events were acknowledged with ${eventIds.length} ids`);
      return;
    }
    const isRepeated = request.fate === "acknowledged";
    const source = isRepeated ? "the answer to the same idempotency key" : "the answer";
    const alike = request.events.filter((event, i) => name(event, eventIds[i] ?? "", source)).length;
    if (isRepeated) {
      figures.repeatedAlike += alike === eventIds.length ? 1 : 0;
      return;
    }
    request.fate = "acknowledged";
    figures.acknowledged += eventIds.length;
    const { hooks } = request.account;
    for (const eventId of eventIds) {
      move(request.account, hooks.filter(({ path }) => tally(path, eventId).concluded.size === 0).length);
    }
  }

  function received({ account, path, eventId, payload, label }: ReceivedEvent, status: number): () => void {
    const event = byHash.get(hashOf(payload));
    if (!event) {
      fault(`${eventId} arrived with a payload of ${payload.length} bytes that nobody sent`);
      return () => {};
    }
    if (event.request.account !== account) {
      fault(`${eventId} of ${event.request.account.id} arrived at a webhook of ${account.id}`);
      return () => {};
    }
    name(event, eventId, "a delivery");
    const record = tally(path, eventId);
    record.arrivals += 1;
    figures.arrivals += 1;
    if (record.underWay > 0) noteOverlap(eventId, path);
    record.underWay += 1;
    const ended = () => {
      record.underWay -= 1;
    };
    if (!isForGood(status)) return ended;
    figures.delivered += isAcknowledgement(status) ? 1 : 0;
    if (record.concluded.size === 0 && event.request.fate === "acknowledged") move(account, -1);
    const before = record.concluded.get(label);
    if (before) noteDuplicate(before.life, eventId, path);
    record.concluded.set(label, { times: (before?.times ?? 0) + 1, life: ledger.life });
    return ended;
  }

  /** Only a server that was frozen can have begun an attempt that another one did not know of. */
  function noteOverlap(eventId: string, path: string): void {
    figures.overlaps += 1;
    if (!ledger.mayOverlap) fault(`two attempts of ${eventId} at ${path} were under way at once`);
  }

  /** A repeat after a crash is what "at least once" allows; one without a crash is not. */
  function noteDuplicate(life: number, eventId: string, path: string): void {
    if (life === ledger.life)
      fault(`${eventId} arrived at ${path} again after a final response, with no crash in between`);
    figures.duplicates += 1;
    duplicatesByLife.set(life, (duplicatesByLife.get(life) ?? 0) + 1);
  }

  const ledger: Ledger = {
    life: 0,
    mayOverlap: false,
    hasStoodStill: false,
    figures,
    tallies,
    requests,
    duplicatesByLife,
    faults,
    fault,
    tally,
    acknowledged,
    received,
    add(account, payloads, bytes, idempotencyKey) {
      const events: SentEvent[] = [];
      const request: SentRequest = { account, events, bytes, idempotencyKey, fate: "open" };
      for (const payload of payloads) {
        const event: SentEvent = { request, eventId: null };
        events.push(event);
        byHash.set(hashOf(payload), event);
      }
      requests.push(request);
      figures.sent += events.length;
      return request;
    },
    refused(request) {
      request.fate = "refused";
      figures.refused += 1;
    },
    eventIdOf: (payload) => byHash.get(hashOf(payload))?.eventId ?? null,
    onTheWay(accounts) {
      return requests
        .filter(({ fate, account }) => fate === "acknowledged" && accounts.includes(account))
        .flatMap(({ account, events }) =>
          events.flatMap(({ eventId }) => account.hooks.map(({ path }) => tally(path, eventId ?? ""))),
        )
        .filter(({ concluded }) => concluded.size === 0);
    },
    whenOnTheWayBelow: (account, count) =>
      new Promise((resolve) => {
        const look = () => {
          if (onTheWayOf(account) >= count) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
  return ledger;
}
