import type { Clock } from "../../lib/clock.ts";
import { createTimeline } from "../../lib/timeline.ts";
import type { WebhookQueue } from "./webhook-queue.ts";

/** Wakes webhooks when the table has something due for them: one timer for all, set for whichever comes first. */
export interface Alarm {
  /**
   * This webhook is due at a future time. Nothing is added if an earlier time is set already: when that comes, the rest is set
   * again. Later times stay set, so that nearer ones coming and going before them leave nothing behind.
   */
  set(queue: WebhookQueue, at: number): void;
  /** Sets the timer, no later than `atLatest` if something else waits for that. */
  arm(atLatest: number | null): void;
  stop(): void;
}

export interface AlarmOptions {
  clock: Clock;
  /** This webhook is due. */
  onDue(queue: WebhookQueue): void;
  /** The timer went off; everything that is due has been reported. */
  onRing(): void;
}

/** A clock that was set ahead, or a machine that has slept, is noticed within this time: timers account for neither. */
const longestSleepMs = 60_000;

export function createAlarm({ clock, onDue, onRing }: AlarmOptions): Alarm {
  const timeline = createTimeline<WebhookQueue>();
  let cancel: (() => void) | null = null;
  let armedFor = Number.POSITIVE_INFINITY;

  function set(queue: WebhookQueue, at: number): void {
    const next = queue.alarms.at(-1);
    if (next !== undefined && next <= at) return;
    queue.alarms.push(at);
    timeline.add(at, queue);
  }

  function ring(): void {
    cancel = null;
    armedFor = Number.POSITIVE_INFINITY;
    for (;;) {
      const queue = timeline.takeDue(clock.now())?.item;
      if (!queue) break;
      queue.alarms.pop();
      if (queue.dueAt !== null && queue.dueAt > clock.now()) set(queue, queue.dueAt);
      else onDue(queue);
    }
    onRing();
  }

  return {
    set,
    arm(atLatest) {
      const at = Math.min(timeline.nextAt() ?? Number.POSITIVE_INFINITY, atLatest ?? Number.POSITIVE_INFINITY);
      if (at === armedFor) return;
      cancel?.();
      cancel = null;
      armedFor = at;
      if (at === Number.POSITIVE_INFINITY) return;
      cancel = clock.after(Math.min(longestSleepMs, Math.max(1, at - clock.now())), ring);
    },
    stop() {
      cancel?.();
    },
  };
}
