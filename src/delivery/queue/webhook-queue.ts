import type { DueDelivery } from "../../domain/delivery.ts";
import type { Tier } from "../../domain/tenant.ts";
import { noLimits, type WebhookLimits } from "../../domain/webhook.ts";
import { Interrupter, type Interruption } from "../../lib/interruption.ts";
import { type Line, type Standing, youngMs } from "./admission.ts";

/** What the dispatcher holds for one webhook: a short piece of its queue, and what it knows about its receiver. */
export interface WebhookQueue {
  readonly webhookKey: number;
  readonly tenantKey: number;
  /** When the table has, or will have, something for it that can be claimed; null: nothing is known of. */
  dueAt: number | null;
  /** The times for which it is in the alarm, the earliest last; set by `alarm.ts`. */
  readonly alarms: number[];
  /** A claim is under way. */
  loading: boolean;
  /** The last claim failed, and the next is yet to come. */
  isLoadPostponed: boolean;
  /** The line in which it waits while it is ready; set by `ready-webhooks.ts`. */
  readyAs: Line | null;
  /** It waits for its account's next tokens; set by `account-pace.ts`. */
  isHeld: boolean;
  /** The plan of its account; null until a delivery has told us. */
  tier: Tier | null;
  /** The limits its tenant has set, as last reported by a delivery or a change. */
  limits: WebhookLimits;
  /** Until when the tokens of its rate are spoken for, on the monotonic clock; set by `webhook-pace.ts`. */
  spokenFor: number;
  /** It waits for its own next token; set by `webhook-pace.ts`. */
  isSlowed: boolean;
  /** Grows with each change of the tenant's settings for it. */
  edition: number;
  removed: boolean;
  /** The tenant has paused it. */
  paused: boolean;
  /** Until then, on the monotonic clock, new arrivals go to the table: they may be from before a change of the settings. */
  tableUntil: number;
  /** It is resuming after a pause; see `isDraining`, which ends that. */
  drains: boolean;
  /** What is in flight is no longer owned. */
  surrendered: boolean;
  readonly inFlight: number;
  /** Deliveries in memory that wait. */
  readonly waiting: number;
  /** Of these, the ones that came straight from their commit. */
  readonly waitingFresh: number;
  readonly signal: Interruption;
  /** Something may go out or be loaded now. */
  canStart(now: number): boolean;
  /** The table has something for it and the piece of the backlog in memory is used up. */
  wantsLoad(now: number): boolean;
  /** It has something due: here, on its way here, or in the table. */
  hasMore(now: number): boolean;
  /** It was paused, and something from then has not gone out yet: new arrivals go to the table, to have their turn after it. */
  isDraining(now: number): boolean;
  addFresh(delivery: DueDelivery): void;
  addStored(delivery: DueDelivery): void;
  /** The next one to send, alternating between fresh and stored: a replay must not hold up what is new. */
  next(): DueDelivery | null;
  /** `nowMs` is on the monotonic clock, here and below. */
  standingAt(nowMs: number): Standing;
  /** An attempt begins. */
  enter(nowMs: number): void;
  /** Whether an attempt got an answer. If it got none, one attempt at a time until there is an answer again. */
  answered(answered: boolean, nowMs: number): void;
  /** An attempt has ended. */
  leave(): void;
  /** Removes what waits, or only the deliveries that match `only`. */
  clear(only?: (delivery: DueDelivery) => boolean): DueDelivery[];
  /** Breaks off what is in flight. */
  abort(): void;
  isIdle(): boolean;
}

export function createWebhookQueue(
  webhookKey: number,
  tenantKey: number,
  concurrency: (limits: WebhookLimits) => number,
): WebhookQueue {
  let fresh: DueDelivery[] = [];
  let stored: DueDelivery[] = [];
  const interrupter = new Interrupter();
  let isSilent = false;
  let proven = false;
  let tried = false;
  let lastWasFresh = false;
  let inFlight = 0;
  /** Since when attempts have been under way with none answered. */
  let unansweredSince = 0;

  const queue: WebhookQueue = {
    webhookKey,
    tenantKey,
    dueAt: null,
    alarms: [],
    loading: false,
    isLoadPostponed: false,
    readyAs: null,
    isHeld: false,
    tier: null,
    limits: noLimits,
    spokenFor: 0,
    isSlowed: false,
    edition: 0,
    removed: false,
    paused: false,
    drains: false,
    tableUntil: 0,
    surrendered: false,
    get inFlight() {
      return inFlight;
    },
    get waiting() {
      return fresh.length + stored.length;
    },
    get waitingFresh() {
      return fresh.length;
    },
    signal: interrupter,
    canStart(now) {
      if (queue.removed || queue.paused || inFlight >= (isSilent ? 1 : concurrency(queue.limits))) return false;
      return queue.waiting > 0 || queue.wantsLoad(now);
    },
    wantsLoad: (now) => stored.length === 0 && !queue.loading && queue.dueAt !== null && queue.dueAt <= now,
    hasMore: (now) => queue.waiting > 0 || queue.loading || (queue.dueAt !== null && queue.dueAt <= now),
    isDraining(now) {
      queue.drains &&= queue.isLoadPostponed || queue.hasMore(now);
      return queue.drains;
    },
    addFresh: (delivery) => void fresh.push(delivery),
    addStored: (delivery) => void stored.push(delivery),
    next() {
      const takeFresh = fresh.length > 0 && (stored.length === 0 || !lastWasFresh);
      lastWasFresh = takeFresh;
      return (takeFresh ? fresh : stored).shift() ?? null;
    },
    standingAt(nowMs) {
      const isLate = inFlight > 0 && nowMs - unansweredSince >= youngMs;
      if (proven && !isLate) return "proven";
      return tried || inFlight > 0 ? "silent" : "untried";
    },
    enter(nowMs) {
      if (inFlight === 0) unansweredSince = nowMs;
      inFlight += 1;
    },
    answered(answered, nowMs) {
      proven = answered;
      tried = true;
      isSilent = !answered;
      if (answered) unansweredSince = nowMs;
    },
    leave() {
      inFlight -= 1;
    },
    clear(only) {
      const stays = (delivery: DueDelivery) => only !== undefined && !only(delivery);
      const cleared = [...fresh, ...stored].filter((delivery) => !stays(delivery));
      fresh = fresh.filter(stays);
      stored = stored.filter(stays);
      return cleared;
    },
    abort: () => interrupter.abort(),
    isIdle: () => queue.waiting === 0 && inFlight === 0 && queue.dueAt === null && !queue.loading,
  };
  return queue;
}
