import type { Clock } from "../../lib/clock.ts";
import { createTimeline } from "../../lib/timeline.ts";
import type { WebhookQueue } from "./webhook-queue.ts";

/**
 * Paces the attempts to one webhook where its tenant has set a rate: a token bucket with a tenth of a second's worth, and
 * at least one token, so that attempts are spread over the second. Like `AccountPace`, it delays and never drops, and is
 * one number (GCRA), which the webhook's queue keeps.
 */
export interface WebhookPace {
  /** How many attempts to this webhook may start now. */
  tokens(queue: WebhookQueue): number;
  /** An attempt to it has started. */
  take(queue: WebhookQueue): void;
  /** The webhook waits until it has a token again. */
  hold(queue: WebhookQueue): void;
  /** Hands over those that have one again. */
  release(ready: (queue: WebhookQueue) => void): void;
  /** Its rate has changed: it stops waiting, and any debt from the old rate is forgotten. */
  renew(queue: WebhookQueue): void;
  /** When the next waiting one has a token, by the wall clock; null: none waits. */
  nextAt(): number | null;
  isEmpty(): boolean;
}

export const webhookBurstMs = 100;

/** One that has used up its tokens waits for this many ms' worth of them, so that no timer is set for each. */
const refillMs = 50;

/** A full bucket has a whole token, though its share of a second is a fraction. */
const epsilon = 1e-6;

/** @param servers how many deliver: each takes its share of the rate */
export function createWebhookPace(clock: Clock, servers: () => number): WebhookPace {
  const timeline = createTimeline<WebhookQueue>();
  let waiting = 0;

  /** Time between two tokens; 0: no limit. */
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
