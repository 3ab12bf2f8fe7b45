import { meaningOf } from "../../delivery/verdict.ts";
import type { Clock } from "../../lib/clock.ts";
import { pause } from "../client/patience.ts";
import type { FetchDelivery } from "./fetch-delivery.ts";
import { type LocalAnswer, postTo } from "./local-address.ts";
import type { Item, Source } from "./source.ts";

/** The outcome of one attempt to forward an item. */
export interface Forwarded extends LocalAnswer {
  readonly item: Item;
  /** Null: the event has no type. */
  readonly eventType: string | null;
  /** From 1. */
  readonly attempt: number;
  /** How long until the next attempt; null: this was the last. */
  readonly retryInMs: number | null;
}

export interface ForwardDeps {
  source: Pick<Source, "items">;
  fetchDelivery: FetchDelivery;
  forwardTo: URL;
  concurrency: number;
  /** How many more times an item is forwarded after an answer that may be temporary. */
  retries: number;
  clock: Clock;
  /** Called for every attempt. */
  onForwarded(forwarded: Forwarded): void;
  signal: AbortSignal;
}

/** A running forwarder. */
export interface Forwarder {
  /** Takes items and forwards them until the signal. @throws the signal's reason, or what fetching a delivery throws */
  run(): Promise<never>;
  /** Resolves when no request to the local address is under way. */
  whenIdle(): Promise<void>;
  /** The newest event of those up to which all have been forwarded, in the order of the items; null before the first. */
  readonly forwardedThrough: string | null;
  /** Items that were taken and have not been forwarded. */
  unforwarded(): readonly Item[];
}

const firstPauseMs = 1000;
const longestPauseMs = 30_000;

/** Short, because somebody is watching: a development server that restarts is back within seconds. */
const pauseBefore = (retry: number) => Math.min(longestPauseMs, firstPauseMs * 2 ** (retry - 1));

/** Judged as a delivery would be. */
const mayPass = ({ status }: LocalAnswer) => status === null || meaningOf(status) === "retryable";

/**
 * Forwards items, several at a time. Deliveries are fetched as room becomes available, and requests to the local address start
 * in the order of the items; a slow or repeated one does not keep the next from starting.
 */
export function createForwarder(deps: ForwardDeps): Forwarder {
  const { source, fetchDelivery, forwardTo, concurrency, retries, clock, onForwarded, signal } = deps;
  /** Items under way, in order; one that is done stays until all earlier ones are done. */
  const row: { readonly item: Item; isDone: boolean }[] = [];
  const underWay = new Set<Promise<void>>();
  let previousBegan: Promise<void> = Promise.resolve();
  let forwardedThrough: string | null = null;

  async function forward(item: Item, inTurn: Promise<void>, begin: () => void): Promise<void> {
    const place = { item, isDone: false };
    row.push(place);
    try {
      for (let attempt = 1; ; attempt += 1) {
        // Fetched afresh for each attempt: receivers refuse what was signed long ago.
        const delivery = await fetchDelivery(item.eventId);
        await inTurn;
        signal.throwIfAborted();
        const isSent = !("undeliverable" in delivery);
        const answering = isSent ? postTo(forwardTo, delivery, clock) : notSent(delivery.undeliverable);
        begin();
        const answer = await answering;
        const isRepeated = isSent && attempt <= retries && mayPass(answer);
        const retryInMs = isRepeated ? pauseBefore(attempt) : null;
        const eventType = isSent ? (delivery.eventType ?? null) : null;
        onForwarded({ item, eventType, attempt, retryInMs, ...answer });
        if (retryInMs === null) break;
        await pause(clock, retryInMs, signal);
      }
      place.isDone = true;
      while (row[0]?.isDone) {
        const { eventId } = row[0].item;
        row.shift();
        // One found late, after a gap, is older than many before it.
        if (forwardedThrough === null || eventId > forwardedThrough) forwardedThrough = eventId;
      }
    } finally {
      begin();
    }
  }

  return {
    async run() {
      let fail: (error: unknown) => void = () => {};
      const failed = new Promise<never>((_, reject) => {
        fail = reject;
      });
      failed.catch(() => {});
      const takeAll = async () => {
        for await (const item of source.items(signal)) {
          const { promise: began, resolve: begin } = Promise.withResolvers<void>();
          const job: Promise<void> = forward(item, previousBegan, begin)
            .catch(fail)
            .finally(() => underWay.delete(job));
          underWay.add(job);
          previousBegan = began;
          if (underWay.size >= concurrency) await Promise.race(underWay);
          signal.throwIfAborted();
        }
        throw signal.reason;
      };
      return Promise.race([takeAll(), failed]);
    },
    whenIdle: async () => void (await Promise.allSettled(underWay)),
    get forwardedThrough() {
      return forwardedThrough;
    },
    unforwarded: () => row.flatMap(({ item, isDone }) => (isDone ? [] : [item])),
  };
}

const notSent = (error: string): LocalAnswer => ({ status: null, error, durationMs: 0 });
