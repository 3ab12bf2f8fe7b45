import type { Clock } from "../../lib/clock.ts";
import { createTimeline } from "../../lib/timeline.ts";
import type { WebhookQueue } from "./webhook-queue.ts";

/**
 * How fast the attempts to one webhook follow each other, where its tenant has said so: a token bucket with a tenth of a
 * second's worth, one token at least, so that they are spread over the second. As `AccountPace`, it delays and never loses,
 * and is one number (GCRA), which the webhook's queue keeps.
 */
export interface WebhookPace {
  /** How many attempts to this webhook may start now. */
  tokens(queue: WebhookQueue): number;
  /** An attempt to it has started. */
  take(queue: WebhookQueue): void;
  /** The webhook waits until it has a token again. */
  hold(queue: WebhookQueue): void;
  /** Hands over those that have one by now. */
  release(ready: (queue: WebhookQueue) => void): void;
  /** Its rate is another now: it waits no more, and what the one before had it wait for is forgotten. */
  renew(queue: WebhookQueue): void;
  /** When the next one that waits has a token, by the wall clock; null: none does. */
  nextAt(): number | null;
  isEmpty(): boolean;
}

export const webhookBurstMs = 100;

/** One that has used up its tokens waits for so many ms' worth of them, and no timer is set for each. */
const refillMs = 50;

/** A full bucket has a whole token, though its share of a second is a fraction. */
const epsilon = 1e-6;

/** @param servers how many deliver: each takes its part of the rate */
export function createWebhookPace(clock: Clock, servers: () => number): WebhookPace {
  const timeline = createTimeline<WebhookQueue>();
  let waiting = 0;

  /** Between two tokens; 0: as many as it takes. */
  const intervalMs = ({ limits }: WebhookQueue) =>
    limits.rateLimit === null ? 0 : (1000 * servers()) / limits.rateLimit;
  const debtMs = (queue: WebhookQueue) => Math.max(0, queue.spokenFor - clock.monotonicMs());
  const burstMs = (interval: number) => Math.max(webhookBurstMs, interval);

  function free(queue: WebhookQueue): void {
    if (!queue.isSlowed) return;
    queue.isSlowed = false;
    waiting -= 1;
  }

  return {
    tokens(queue) {
      const interval = intervalMs(queue);
      if (interval === 0) return Number.POSITIVE_INFINITY;
      return Math.floor((burstMs(interval) - debtMs(queue)) / interval + epsilon);
    },
    take(queue) {
      const interval = intervalMs(queue);
      if (interval > 0) queue.spokenFor = Math.max(clock.monotonicMs(), queue.spokenFor) + interval;
    },
    hold(queue) {
      if (queue.isSlowed) return;
      queue.isSlowed = true;
      waiting += 1;
      const interval = intervalMs(queue);
      const ms = debtMs(queue) - burstMs(interval) + Math.max(interval, refillMs);
      timeline.add(clock.monotonicMs() + Math.max(1, Math.ceil(ms)), queue);
    },
    release(ready) {
      for (;;) {
        const due = timeline.takeDue(clock.monotonicMs());
        if (!due) return;
        if (!due.item.isSlowed) continue;
        free(due.item);
        ready(due.item);
      }
    },
    renew(queue) {
      free(queue);
      queue.spokenFor = 0;
    },
    nextAt() {
      const at = waiting === 0 ? null : timeline.nextAt();
      return at === null ? null : Math.ceil(clock.now() + at - clock.monotonicMs());
    },
    isEmpty: () => waiting === 0,
  };
}
