import type { Clock } from "../lib/clock.ts";
import type { Call } from "./next-task.ts";

export interface TurnsDeps {
  clock: Pick<Clock, "monotonicMs" | "after">;
  /** Maximum charges per second; infinite when there is no limit. */
  chargesPerSecond: number;
  /** It is the account's turn to make the call. Must not reject. */
  onTurn(accountKey: number, call: Call): Promise<void>;
  /** The account's turn has ended. */
  onEnded(accountKey: number): void;
}

/**
 * Accounts waiting for their turn at the processor: to make a month-end charge within the processor's limits, or for the
 * end of a pause that it asked for. They wait in memory and stay due in the books, so a wait is not written, a restart
 * finds all of them again, and whatever else is due can overtake them.
 */
export interface Turns {
  /** Whether a call can be made now, without a turn. */
  isOpen(call: Call): boolean;
  /** Puts the account at the end of the queue, unless it is waiting already. */
  wait(accountKey: number, version: number, call: Call): void;
  /** Whether an account has its turn, or is waiting and has not changed since this version of its books. */
  isWaiting(accountKey: number, version: number): boolean;
  hasTurn(accountKey: number): boolean;
  /** How many are waiting or have their turn. */
  readonly size: number;
  /** The processor asks us to hold off on this call. */
  pause(call: Call, durationMs: number): void;
  /** No further turn begins. Resolves when those under way have ended. */
  stop(): Promise<void>;
}

/** Concurrent turns for each kind of call. */
const concurrency = 4;

/** The queue is checked at least this often, in case a timer is late. */
const longestTimerMs = 60_000;

interface Queue {
  /** The version of the books with which each account waits, longest wait first. */
  readonly waiting: Map<number, number>;
  /** When the next turn may begin. */
  openAt: number;
  underWay: number;
  cancelTimer(): void;
}

export function createTurns({ clock, chargesPerSecond, onTurn, onEnded }: TurnsDeps): Turns {
  const queues = new Map<Call, Queue>();
  /** Accounts that have their turn. */
  const active = new Set<number>();
  const ending = new Set<Promise<void>>();
  let stopped = false;

  const pauseAfter = (call: Call) => (call === "charge" ? 1000 / chargesPerSecond : 0);

  function queueOf(call: Call): Queue {
    const queue = queues.get(call) ?? { waiting: new Map(), openAt: 0, underWay: 0, cancelTimer() {} };
    queues.set(call, queue);
    return queue;
  }

  function give(call: Call, queue: Queue): void {
    queue.cancelTimer();
    while (!stopped && queue.waiting.size > 0 && queue.underWay < concurrency) {
      const now = clock.monotonicMs();
      if (queue.openAt > now) {
        queue.cancelTimer = clock.after(Math.min(queue.openAt - now, longestTimerMs), () => give(call, queue));
        return;
      }
      // An account that already has a turn comes back for its next one when that turn ends.
      const accountKey = queue.waiting.keys().find((key) => !active.has(key));
      if (accountKey === undefined) return;
      queue.waiting.delete(accountKey);
      queue.openAt = now + pauseAfter(call);
      begin(accountKey, call, queue);
    }
  }

  function begin(accountKey: number, call: Call, queue: Queue): void {
    queue.underWay += 1;
    active.add(accountKey);
    const ended = onTurn(accountKey, call).finally(() => {
      queue.underWay -= 1;
      active.delete(accountKey);
      ending.delete(ended);
      onEnded(accountKey);
      for (const [other, waiting] of queues) give(other, waiting);
    });
    ending.add(ended);
  }

  return {
    isOpen: (call) => pauseAfter(call) === 0 && queueOf(call).openAt <= clock.monotonicMs(),
    wait(accountKey, version, call) {
      for (const [other, { waiting }] of queues) if (other !== call) waiting.delete(accountKey);
      const queue = queueOf(call);
      // Setting a key again keeps its place.
      queue.waiting.set(accountKey, version);
      give(call, queue);
    },
    isWaiting(accountKey, version) {
      if (active.has(accountKey)) return true;
      for (const { waiting } of queues.values()) if (waiting.get(accountKey) === version) return true;
      return false;
    },
    hasTurn: (accountKey) => active.has(accountKey),
    get size() {
      return [...queues.values()].reduce((sum, { waiting }) => sum + waiting.size, active.size);
    },
    pause(call, durationMs) {
      const queue = queueOf(call);
      queue.openAt = Math.max(queue.openAt, clock.monotonicMs() + durationMs);
    },
    async stop() {
      stopped = true;
      for (const queue of queues.values()) queue.cancelTimer();
      await Promise.all(ending);
    },
  };
}
