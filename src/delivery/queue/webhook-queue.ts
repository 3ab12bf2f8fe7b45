import type { DueDelivery } from "../../domain/delivery.ts";
import type { Tier } from "../../domain/tenant.ts";
import type { Standing } from "./admission.ts";

/** What the dispatcher holds for one webhook: a short piece of its queue, and what it knows of its receiver. */
export interface WebhookQueue {
  readonly webhookKey: number;
  readonly tenantKey: number;
  /** When the table has, or will have, something for it that is not held; null: nothing that is known of. */
  dueAt: number | null;
  /** The earliest time for which it stands in the alarm; null: for none. */
  alarmAt: number | null;
  /** A read of the table is under way. */
  loading: boolean;
  /** It stands among those that are ready; `ready-webhooks.ts` says so. */
  isReady: boolean;
  /** It waits for its account's next tokens; `account-pace.ts` says so. */
  isHeld: boolean;
  /** The plan that holds for its account; null until a delivery told it. */
  tier: Tier | null;
  removed: boolean;
  inFlight: number;
  readonly standing: Standing;
  /** Deliveries in memory, waiting or in flight. */
  readonly heldCount: number;
  readonly signal: AbortSignal;
  /** Something may go out or be loaded now. */
  canStart(now: number): boolean;
  /** The table has something for it and the piece of the backlog in memory is used up. */
  wantsLoad(now: number): boolean;
  /** False when the delivery is held already. */
  addFresh(delivery: DueDelivery): boolean;
  /** As `addFresh`. A newer run takes the place of one that waits; one in flight is noted, for `release`. */
  addStored(delivery: DueDelivery): boolean;
  /** The next one to send, fresh and stored ones in turn: a replay must not hold up what is new. */
  next(): DueDelivery | null;
  /**
   * An attempt has ended. True when the table had a newer run of it already as it was read last: a replay that was
   * committed right behind the attempt's own settlement, while the delivery was still held, would be lost otherwise.
   */
  release(deliveryKey: number): boolean;
  /** Whether an attempt got an answer. After none, one attempt at a time until there is one again. */
  answered(answered: boolean): void;
  /** Lets go of what waits. */
  clear(): DueDelivery[];
  /** Breaks off what is in flight. */
  abort(): void;
  isIdle(): boolean;
}

export function createWebhookQueue(webhookKey: number, tenantKey: number, concurrency: number): WebhookQueue {
  let fresh: DueDelivery[] = [];
  let stored: DueDelivery[] = [];
  /** Deliveries that are held, and the run of each. */
  const held = new Map<number, number>();
  /** Those in flight of which the table has a newer run. */
  const overtaken = new Set<number>();
  const aborter = new AbortController();
  let limit = concurrency;
  let proven = false;
  let tried = false;
  let lastWasFresh = false;

  const add = (list: DueDelivery[], delivery: DueDelivery) => {
    if (held.has(delivery.deliveryKey)) return false;
    held.set(delivery.deliveryKey, delivery.run);
    list.push(delivery);
    return true;
  };

  function overtake(newer: DueDelivery): void {
    for (const list of [fresh, stored]) {
      const at = list.findIndex(({ deliveryKey }) => deliveryKey === newer.deliveryKey);
      if (at < 0) continue;
      list[at] = newer;
      held.set(newer.deliveryKey, newer.run);
      return;
    }
    overtaken.add(newer.deliveryKey);
  }

  const queue: WebhookQueue = {
    webhookKey,
    tenantKey,
    dueAt: null,
    alarmAt: null,
    loading: false,
    isReady: false,
    isHeld: false,
    tier: null,
    removed: false,
    inFlight: 0,
    get standing() {
      if (proven) return "proven";
      return tried || queue.inFlight > 0 ? "silent" : "untried";
    },
    get heldCount() {
      return held.size;
    },
    signal: aborter.signal,
    canStart(now) {
      if (queue.removed || queue.inFlight >= limit) return false;
      if (fresh.length > 0 || stored.length > 0) return true;
      return queue.wantsLoad(now);
    },
    wantsLoad: (now) => stored.length === 0 && !queue.loading && queue.dueAt !== null && queue.dueAt <= now,
    addFresh: (delivery) => add(fresh, delivery),
    addStored(delivery) {
      const heldRun = held.get(delivery.deliveryKey);
      if (heldRun !== undefined && heldRun < delivery.run) overtake(delivery);
      return add(stored, delivery);
    },
    next() {
      const takeFresh = fresh.length > 0 && (stored.length === 0 || !lastWasFresh);
      lastWasFresh = takeFresh;
      return (takeFresh ? fresh : stored).shift() ?? null;
    },
    release(deliveryKey) {
      held.delete(deliveryKey);
      return overtaken.delete(deliveryKey);
    },
    answered(answered) {
      proven = answered;
      tried = true;
      limit = answered ? concurrency : 1;
    },
    clear() {
      const waiting = [...fresh, ...stored];
      fresh = [];
      stored = [];
      for (const { deliveryKey } of waiting) held.delete(deliveryKey);
      return waiting;
    },
    abort: () => aborter.abort(),
    isIdle: () => held.size === 0 && queue.inFlight === 0 && queue.dueAt === null && !queue.loading,
  };
  return queue;
}
