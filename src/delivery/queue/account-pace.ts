import type { Tier } from "../../domain/tenant.ts";
import type { Clock } from "../../lib/clock.ts";
import { createTimeline } from "../../lib/timeline.ts";
import type { WebhookQueue } from "./webhook-queue.ts";

/** Maximum attempts per second for an account on each plan; null: unlimited. */
export type DeliveryRates = Readonly<Record<Tier, number | null>>;

/**
 * Paces the attempts of one account: a token bucket sized by plan, with ten seconds' worth when full. It delays and never
 * drops: a delivery without a token waits in the table, and its webhook waits here for the account's next tokens.
 *
 * A bucket is one number, the time up to which its tokens are spoken for (GCRA, as in ATM's traffic management): a full
 * one need not be remembered, and a new rate applies from the next attempt on.
 */
export interface AccountPace {
  /** How many attempts to this webhook may start now. */
  tokens(queue: Paced): number;
  /** One attempt of this account has started, whether there was a token for it or not. */
  take(tenantKey: number, tier: Tier | null): void;
  /** The webhook waits until its account has tokens again. */
  hold(queue: WebhookQueue): void;
  /** Hands over the webhooks whose account has tokens again. */
  release(ready: (queue: WebhookQueue) => void): void;
  /** Hands over the webhooks of one account, whose rate has changed. */
  releaseAccount(tenantKey: number, ready: (queue: WebhookQueue) => void): void;
  /** When the next account with waiting webhooks has tokens, by the wall clock; null: nothing waits. */
  nextAt(): number | null;
  isEmpty(): boolean;
}

type Paced = Pick<WebhookQueue, "tenantKey" | "tier">;

/** The burst that an account may send after a pause, as time at its rate. */
export const burstMs = 10_000;

/** An account that has used up its tokens waits for this many ms' worth of them: one timer for several, not one for each. */
const refillMs = 100;

/** Full buckets are swept out when there are this many, and again when there are twice as many as were left. */
const leastSweep = 1_000;

export function createAccountPace(clock: Clock, rates: DeliveryRates): AccountPace {
  /** Until when the tokens of an account are spoken for, on the monotonic clock. */
  const spokenFor = new Map<number, number>();
  const waiting = new Map<number, WebhookQueue[]>();
  const timeline = createTimeline<number>();
  let sweepAt = leastSweep;

  /** Null: this account has no limit, or nothing is known about it yet because nothing has been read. */
  const rateOf = (tier: Tier | null) => (tier === null ? null : rates[tier]);
  const debtMs = (tenantKey: number) => Math.max(0, (spokenFor.get(tenantKey) ?? 0) - clock.monotonicMs());

  function tokens({ tenantKey, tier }: Paced): number {
    const rate = rateOf(tier);
    return rate === null ? Number.POSITIVE_INFINITY : Math.floor(((burstMs - debtMs(tenantKey)) * rate) / 1000);
  }

  function waitMs({ tenantKey, tier }: Paced): number {
    const intervalMs = 1000 / (rateOf(tier) ?? Number.POSITIVE_INFINITY);
    return Math.max(1, Math.ceil(debtMs(tenantKey) - burstMs + Math.max(intervalMs, refillMs)));
  }

  function sweep(): void {
    const now = clock.monotonicMs();
    for (const [tenantKey, until] of spokenFor) if (until <= now) spokenFor.delete(tenantKey);
    sweepAt = Math.max(leastSweep, 2 * spokenFor.size);
  }

  function releaseAccount(tenantKey: number, ready: (queue: WebhookQueue) => void): void {
    const queues = waiting.get(tenantKey) ?? [];
    waiting.delete(tenantKey);
    for (const queue of queues) {
      queue.isHeld = false;
      ready(queue);
    }
  }

  return {
    tokens,
    take(tenantKey, tier) {
      const rate = rateOf(tier);
      if (rate === null) return;
      const now = clock.monotonicMs();
      spokenFor.set(tenantKey, Math.max(now, spokenFor.get(tenantKey) ?? 0) + 1000 / rate);
      if (spokenFor.size >= sweepAt) sweep();
    },
    hold(queue) {
      if (queue.isHeld) return;
      queue.isHeld = true;
      const beside = waiting.get(queue.tenantKey);
      if (beside) {
        beside.push(queue);
        return;
      }
      waiting.set(queue.tenantKey, [queue]);
      timeline.add(clock.monotonicMs() + waitMs(queue), queue.tenantKey);
    },
    release(ready) {
      for (;;) {
        const due = timeline.takeDue(clock.monotonicMs());
        if (!due) return;
        releaseAccount(due.item, ready);
      }
    },
    releaseAccount,
    nextAt() {
      const at = timeline.nextAt();
      return at === null ? null : Math.ceil(clock.now() + at - clock.monotonicMs());
    },
    isEmpty: () => waiting.size === 0,
  };
}
