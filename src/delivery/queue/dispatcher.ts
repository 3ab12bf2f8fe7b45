import type { DueDelivery } from "../../domain/delivery.ts";
import { limitsOf, type WebhookRef } from "../../domain/webhook.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import type { Log } from "../../lib/log.ts";
import type { Store } from "../../store/store.ts";
import type { Delivered, Route } from "../deliver.ts";
import type { AccountPace } from "./account-pace.ts";
import { type Admission, createAdmission, type Line } from "./admission.ts";
import { createAlarm } from "./alarm.ts";
import type { DeliveryControl } from "./control.ts";
import { createDiscovery } from "./discovery.ts";
import { createHindsight } from "./hindsight.ts";
import { createLoader } from "./loader.ts";
import { createReadyWebhooks } from "./ready-webhooks.ts";
import { already, createReturns } from "./returns.ts";
import { createWebhookPace } from "./webhook-pace.ts";
import type { WebhookQueue } from "./webhook-queue.ts";
import { createWebhookQueues } from "./webhook-queues.ts";
import { createWindow, withoutRequest } from "./window.ts";

/**
 * Decides which delivery goes out next. The table is the truth; this is a bounded window on it:
 *
 *   commit ──offer──▶ fresh ─┐
 *                            ├─▶ one queue a webhook ─▶ served in turn ─▶ deliver ─▶ settle
 *   table ───claim──▶ stored ┘         ▲                                                │
 *     ▲                                └── dueAt: when the table has something for it ◀─┘
 *     └─release── what finds no room in the window, or nothing more goes out for
 *
 * What is here is owned here: the store gives it to nobody else until its attempt is settled, or it is released.
 */
export interface Dispatcher extends Omit<DeliveryControl, "endOrder"> {
  /** Finds out what is pending and begins. */
  start(): Promise<void>;
  /** How many more deliveries may be owned here now. */
  roomFor(webhook: WebhookRef): number;
  /** Takes fresh deliveries, straight from their commit and already owned; any that find no room after all go back. */
  offer(deliveries: readonly DueDelivery[]): void;
  /**
   * Starts nothing more, gives back what waits, and lets what is in flight end, for at most `graceMs`. Resolves with the
   * number left.
   */
  stop(graceMs: number): Promise<number>;
  /** Takes note of how much of our own time recent attempts took. */
  heed: Admission["heed"];
  /** The store takes no writes: nothing starts whose outcome could not be recorded. */
  stall(stalled: boolean): void;
  /** The operator holds deliveries back: nothing starts, and what comes waits in the table. */
  hold(held: boolean): void;
  /** Resolves as soon as nothing is queued, in flight or due. */
  whenIdle(): Promise<void>;
  readonly inFlight: number;
  /** See `ReadyWebhooks`. */
  readonly waitingForPlace: number;
  /** Deliveries held in memory, waiting or in flight. */
  readonly held: number;
}

/** Deliveries that one webhook may keep in memory, so that one backlog does not fill the window. */
const windowPerWebhook = 256;
/** How long after its commit a delivery may be offered: as long as the answer to a statement may take. */
const offerMs = 15_000;
/** Pause after a defect. */
const retryMs = 1000;

export interface DispatcherDeps {
  store: Store;
  clock: Clock;
  log: Log;
  deliver(delivery: DueDelivery, route: Route): Promise<Delivered>;
  /** Maximum concurrent attempts to one webhook from here. */
  webhookConcurrency(): number;
  /** Whether an attempt may start: what is owned here will stay so until the attempt has ended. */
  mayStart(): boolean;
  pace: AccountPace;
  /** How many servers deliver, each with its share of what a webhook's limits allow. */
  servers(): number;
}

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { store, clock, log, deliver, webhookConcurrency, mayStart, pace, servers } = deps;
  const admission = createAdmission(clock);
  const queues = createWebhookQueues({ webhookConcurrency, servers });
  const webhookPace = createWebhookPace(clock, servers);
  const paused = new Set<number>();
  const hindsight = createHindsight();
  const alarm = createAlarm({ clock, onDue: makeReady, onRing: pump });
  const ready = createReadyWebhooks(clock, admission);
  let stalls = 0;
  let onHold = false;
  let stopping = false;
  let started = false;
  const window = createWindow();
  const discovery = createDiscovery({
    store,
    clock,
    log,
    onFound: (lane) => expectFor(lane, lane.firstDueAt),
    onEnd: pump,
  });
  const returns = createReturns({
    store,
    clock,
    log,
    onReturned: expectFor,
    onEnd: pump,
  });
  const loader = createLoader({
    ...{ store, clock, log, window, hindsight, returns, tokens, isClosed },
    isStopping: () => stopping,
    onLoaded: learn,
    onMore: expect,
    onEnd(queue) {
      makeReady(queue, ready.addFirst);
      pump();
    },
  });
  const idleWaiters: (() => void)[] = [];

  /** The table has something for this webhook, or will have at that time. */
  function expect(queue: WebhookQueue, at: number): void {
    if (queue.dueAt === null || at < queue.dueAt) queue.dueAt = at;
    if (at > clock.now()) alarm.set(queue, at);
    // The end of a load makes it ready, and puts it first.
    else if (!queue.loading) makeReady(queue);
  }

  /** Like `expect`, for a webhook that may have no queue yet; does nothing for one that is gone. */
  function expectFor(webhook: WebhookRef, at: number): void {
    if (!hindsight.isOutdated(webhook)) expect(queues.of(webhook), at);
  }

  function makeReady(queue: WebhookQueue, join = ready.add): void {
    if (queue.readyAs !== null || queue.removed || paused.has(queue.tenantKey)) return;
    if (!queue.canStart(clock.now())) {
      // Its alarm may have rung already, before the clock was set back.
      if (queue.dueAt !== null && queue.dueAt > clock.now()) alarm.set(queue, queue.dueAt);
      return;
    }
    if (pace.tokens(queue) < 1) pace.hold(queue);
    else if (webhookPace.tokens(queue) < 1) webhookPace.hold(queue);
    else join(queue);
  }

  /** How many attempts may start now, under its account's rate and its own. */
  function tokens(queue: WebhookQueue): number {
    return Math.min(pace.tokens(queue), webhookPace.tokens(queue));
  }

  /** Takes over what a delivery says about its account and its webhook. */
  function learn(queue: WebhookQueue, { tier, limits }: DueDelivery): void {
    queue.tier = tier;
    queue.limits = limits;
  }

  let pumping = false;
  function pump(): void {
    if (pumping || stopping || !started || stalls > 0 || onHold || !mayStart()) return;
    pumping = true;
    pace.release(makeReady);
    webhookPace.release(makeReady);
    ready.serve(serve);
    pumping = false;
    alarm.arm(earlier(ready.nextTurnAt(), earlier(pace.nextAt(), webhookPace.nextAt())));
    if (idleWaiters.length > 0 && isIdle()) {
      for (const resolve of idleWaiters.splice(0)) resolve();
    }
  }

  /**
   * Starts the next delivery of a webhook, or a read of the table for it. Even if it starts nothing, it may have an alarm
   * to set.
   */
  function serve(queue: WebhookQueue, line: Line): boolean {
    const starts = !paused.has(queue.tenantKey) && queue.canStart(clock.now()) && tokens(queue) > 0;
    if (starts) {
      if (queue.wantsLoad(clock.now())) loader.load(queue);
      const { waitingFresh } = queue;
      const delivery = queue.next();
      if (delivery) begin(queue, delivery, line, queue.waitingFresh < waitingFresh);
    }
    makeReady(queue);
    return starts;
  }

  function begin(queue: WebhookQueue, delivery: DueDelivery, line: Line, cameStraight: boolean): void {
    window.letGo(delivery);
    pace.take(queue.tenantKey, queue.tier);
    webhookPace.take(queue);
    const place = admission.enter(line);
    queue.enter(clock.monotonicMs());
    const { edition } = queue;
    // A delivery from an earlier edition carries the old settings.
    const isClosed = () =>
      queue.removed ||
      queue.edition !== edition ||
      paused.has(queue.tenantKey) ||
      hindsight.isCancelled(delivery) ||
      !mayStart();
    const isAwaited = () => delivery.orderHash !== null || queue.hasMore(clock.now()) || !ready.isEmpty();
    const leave = () => {
      admission.leave(place);
      queue.leave();
      if (queue.removed && queue.inFlight === 0) queues.remove(queue);
      makeReady(queue);
      pump();
      drained();
    };
    deliver(delivery, { signal: queue.signal, isFresh: cameStraight && line === "fresh", isClosed, isAwaited }).then(
      (result) => {
        const connectionFree = finish(queue, delivery, result);
        if (connectionFree !== null) connectionFree.then(leave, leave);
        else leave();
      },
      (error: unknown) => {
        // A bug, or the store was closed while it had no room for the outcome, which is nobody's fault. The record is
        // still pending in the table and will be due again.
        log.write(stopping ? "warn" : "error", "delivery.broken", {
          eventId: delivery.eventId,
          error: messageOf(error),
        });
        if (!queue.surrendered) returns.giveBack([delivery], clock.now() + retryMs);
        leave();
      },
    );
  }

  function finish(queue: WebhookQueue, delivery: DueDelivery, result: Delivered): Promise<void> | null {
    // What was surrendered is not ours to give back: by now it may have another owner.
    if (queue.surrendered) return result.connectionFree;
    if (result.kind === "aborted") {
      returns.giveBack([delivery]);
      return null;
    }
    ready.learn(queue, result.answered);
    if (result.kind === "superseded" || result.hasReleased) expect(queue, already);
    else if (result.kind === "settled" && result.next?.kind === "retry") expect(queue, result.next.at);
    return result.connectionFree;
  }

  const isIdle = () =>
    started &&
    !loader.areUnderWay &&
    !returns.areUnderWay &&
    admission.inFlight === 0 &&
    window.deliveries === 0 &&
    ready.isEmpty() &&
    pace.isEmpty() &&
    webhookPace.isEmpty();

  /** Nothing goes out to it from here, for the time being or ever. */
  function isClosed(queue: WebhookQueue): boolean {
    return queue.removed || queue.paused || paused.has(queue.tenantKey) || stopping;
  }

  function roomFor(webhook: WebhookRef): number {
    // On hold, the window would keep what came last, and send it before what has waited longer.
    if (onHold || stopping || paused.has(webhook.tenantKey) || hindsight.isOutdated(webhook) || !window.hasRoom)
      return 0;
    const queue = queues.get(webhook.webhookKey);
    if (!queue) return windowPerWebhook;
    if (queue.paused || queue.isDraining(clock.now()) || clock.monotonicMs() < queue.tableUntil) return 0;
    // What finds no token waits in the table; here it would take the place of others.
    return Math.min(windowPerWebhook - queue.waiting - queue.inFlight, tokens(queue) - queue.waiting);
  }

  /** Gives back what waits for these webhooks, or only the deliveries that match `only`. */
  function drop(dropped: readonly WebhookQueue[], only?: (delivery: DueDelivery) => boolean): void {
    const waiting = dropped.flatMap((queue) => queue.clear(only));
    for (const delivery of waiting) window.letGo(delivery);
    returns.giveBack(waiting);
  }

  /**
   * Starts nothing more to this webhook. Its queue stays until what is in flight has ended: a deletion may still have to
   * abort that.
   */
  function close(queue: WebhookQueue): void {
    queue.removed = true;
    drop([queue]);
    if (queue.inFlight === 0) queues.remove(queue);
  }

  let drainedWaiter: (() => void) | null = null;
  function drained(): void {
    if (admission.inFlight === 0) drainedWaiter?.();
  }

  return {
    async start() {
      started = true;
      await discovery.start();
    },

    roomFor,

    offer(deliveries) {
      const homeless: DueDelivery[] = [];
      for (const offered of deliveries) {
        if (roomFor(offered) < 1 || !window.hasRoomFor(offered)) {
          homeless.push(offered);
          continue;
        }
        const delivery = withoutRequest(offered);
        const queue = queues.of(delivery);
        learn(queue, delivery);
        queue.addFresh(delivery);
        window.hold(delivery);
        if (queue.readyAs === null) makeReady(queue);
        else ready.add(queue);
      }
      returns.giveBack(homeless);
      pump();
    },

    wake(webhooks) {
      for (const webhook of webhooks) expectFor(webhook, already);
      pump();
    },

    overtake(deliveries) {
      const waitsFor = new Set(deliveries.map(({ webhookKey }) => webhookKey));
      const keys = new Set(deliveries.map(({ deliveryKey }) => deliveryKey));
      drop(
        [...waitsFor].flatMap((webhookKey) => queues.get(webhookKey) ?? []),
        ({ deliveryKey }) => keys.has(deliveryKey),
      );
      pump();
    },

    cancelReplay(tenantKey, replayKey) {
      hindsight.replayCancelled(replayKey);
      drop(queues.ofTenant(tenantKey), hindsight.isCancelled);
      pump();
    },

    removeWebhooks(webhookKeys) {
      for (const key of webhookKeys) {
        hindsight.webhookClosed(key);
        const queue = queues.get(key);
        if (!queue) continue;
        close(queue);
      }
      pump();
    },

    disableWebhook(webhookKey) {
      hindsight.webhookClosed(webhookKey);
      const queue = queues.get(webhookKey);
      if (queue) close(queue);
      pump();
    },

    enableWebhook(webhook) {
      hindsight.webhookEnabled(webhook.webhookKey);
      // Its queue is still here if an attempt is in flight.
      const queue = queues.get(webhook.webhookKey);
      if (queue) queue.removed = false;
      expectFor(webhook, already);
      pump();
    },

    stopTenant(tenantKey) {
      hindsight.tenantDeleted(tenantKey);
      for (const queue of queues.ofTenant(tenantKey)) {
        close(queue);
        queue.abort();
      }
      paused.delete(tenantKey);
      pump();
    },

    pauseTenant(tenantKey) {
      paused.add(tenantKey);
      drop(queues.ofTenant(tenantKey));
      pump();
    },

    resumeTenant(tenantKey) {
      paused.delete(tenantKey);
      discovery.look();
    },

    surrender() {
      returns.forget();
      // What has ended since will not be told: changes are kept only for those who hold a lease. If the store has gone back,
      // some of what was told has never been. What still holds is found out by accepting and claiming.
      paused.clear();
      hindsight.forgetAll();
      let surrendered = 0;
      for (const queue of queues.all()) {
        queue.removed = true;
        queue.surrendered = true;
        const waiting = queue.clear();
        surrendered += waiting.length + queue.inFlight;
        for (const delivery of waiting) window.letGo(delivery);
        queue.abort();
        // Whatever is found for this webhook from now on gets a new queue.
        queues.remove(queue);
      }
      return surrendered;
    },

    look() {
      discovery.look();
      pump();
    },

    throttle(tenantKey, webhooks) {
      for (const { webhookKey, paused: isPaused, resumes, ...limits } of webhooks) {
        const queue = queues.of({ tenantKey, webhookKey });
        queue.paused = isPaused;
        if (queue.limits.rateLimit !== limits.rateLimit) webhookPace.renew(queue);
        queue.limits = limitsOf(limits);
        // What is here, or on its way here, carries the old settings.
        queue.edition += 1;
        queue.tableUntil = clock.monotonicMs() + offerMs;
        drop([queue]);
        if (resumes) queue.drains = true;
        if (!isPaused) expect(queue, already);
      }
      pump();
    },

    adoptPlan(tenantKey, tier) {
      for (const queue of queues.ofTenant(tenantKey)) queue.tier = tier;
      pace.releaseAccount(tenantKey, makeReady);
      pump();
    },

    heed: admission.heed,

    stall(stalled) {
      stalls += stalled ? 1 : -1;
      pump();
    },

    hold(held) {
      onHold = held;
      pump();
    },

    async stop(graceMs) {
      stopping = true;
      alarm.stop();
      discovery.stop();
      drop(queues.all());
      if (admission.inFlight > 0) {
        await new Promise<void>((resolve) => {
          const cancel = clock.after(graceMs, resolve);
          drainedWaiter = () => {
            cancel();
            resolve();
          };
        });
      }
      await returns.stop();
      return admission.inFlight;
    },

    whenIdle: () => (isIdle() ? Promise.resolve() : new Promise((resolve) => idleWaiters.push(resolve))),
    get inFlight() {
      return admission.inFlight;
    },
    get waitingForPlace() {
      return ready.waitingForPlace;
    },
    get held() {
      return window.deliveries + admission.inFlight;
    },
  };
}

const earlier = (a: number | null, b: number | null) => (a === null || b === null ? (a ?? b) : Math.min(a, b));
