/**
 * Lets a limited number of tasks run at a time; the others wait, and callers that ask for much wait behind those that ask
 * for little. Every task names its owner by one or several keys (an account, a network): however many tasks a key brings,
 * it gets its share of the turns and no more, so a flood only delays itself.
 */
export interface FairQueue {
  /** @throws QueueFull when too many wait; at any time, because a caller that asked for less may take the place */
  run<T>(keys: readonly string[], task: () => Promise<T>): Promise<T>;
  readonly isIdle: boolean;
}

/** Nothing was begun: the caller may be asked to come again. */
export class QueueFull extends Error {
  override readonly name = "QueueFull";
}

interface Waiting {
  /** The virtual time at which it would start if every key had the machine's equal share. */
  readonly turn: number;
  start(): void;
  refuse(): void;
}

/**
 * Start-time fair queuing (Goyal, Vin and Cheng, 1996), where the latest of a task's keys counts, and each task takes one
 * unit of virtual time.
 *
 *   now                     virtual time: the turn of the task that was started last
 *   nextTurn(key)           one unit after the turn of the key's latest task; now, for a key that was quiet
 *   turn of a task          the latest nextTurn of its keys
 *
 * @example
 * const hashes = createFairQueue({ slots: 4, maxWaiting: 100 });
 * await hashes.run([account, network], () => Bun.password.verify(password, hash));
 */
export function createFairQueue({ slots, maxWaiting }: { slots: number; maxWaiting: number }): FairQueue {
  let running = 0;
  let now = 0;
  const nextTurns = new Map<string, number>();
  /** In order of arrival. */
  const waiting: Waiting[] = [];
  const maxKeys = 4 * (slots + Math.min(maxWaiting, 1_000));

  const nextTurnOf = (key: string) => Math.max(now, nextTurns.get(key) ?? 0);

  /** Each key by itself: a caller that shares a network with a busy account has not been busy. */
  function charge(keys: readonly string[]): void {
    for (const key of keys) nextTurns.set(key, nextTurnOf(key) + 1);
    if (nextTurns.size > maxKeys) for (const [key, turn] of nextTurns) if (turn <= now) nextTurns.delete(key);
  }

  /** The first of those with the earliest turn. */
  function takeFirst(): Waiting | undefined {
    let at = 0;
    for (let i = 1; i < waiting.length; i++) if (turnAt(i) < turnAt(at)) at = i;
    return waiting.splice(at, 1)[0];
  }

  /** Makes room for a task by refusing the last of those with the latest turn, if that is later. */
  function makeRoom(turn: number): void {
    if (waiting.length < maxWaiting) return;
    let at = 0;
    for (let i = 1; i < waiting.length; i++) if (turnAt(i) >= turnAt(at)) at = i;
    if (waiting.length === 0 || turnAt(at) <= turn) throw new QueueFull("Too many tasks are waiting.");
    waiting.splice(at, 1)[0]?.refuse();
  }

  const turnAt = (i: number) => waiting[i]?.turn ?? 0;

  /** The slot is handed on directly, so that a newcomer cannot overtake those that wait. */
  function passOn(): void {
    // A fraction of a unit passes with every task: otherwise first-time callers would always go first.
    now += 1 / (waiting.length + 1);
    const next = takeFirst();
    if (next) {
      now = Math.max(now, next.turn);
      next.start();
      return;
    }
    running--;
    if (running > 0) return;
    now = 0;
    nextTurns.clear();
  }

  return {
    get isIdle() {
      return running === 0;
    },
    async run(keys, task) {
      const turn = Math.max(now, ...keys.map(nextTurnOf));
      if (running < slots) {
        running++;
        now = turn;
        charge(keys);
      } else {
        makeRoom(turn);
        charge(keys);
        await new Promise<void>((start, reject) => {
          waiting.push({ turn, start, refuse: () => reject(new QueueFull("Others asked for less.")) });
        });
      }
      try {
        return await task();
      } finally {
        passOn();
      }
    },
  };
}
