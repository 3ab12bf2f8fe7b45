import type { Clock } from "../../lib/clock.ts";
import { Queue } from "../../lib/queue.ts";
import type { Admission, Line } from "./admission.ts";
import type { WebhookQueue } from "./webhook-queue.ts";

/**
 * The webhooks that could start an attempt now, and the order in which they may: first those that answer, then new ones,
 * then silent ones; within each group they take turns, one attempt each. Among those that answer, webhooks with something
 * fresh and webhooks with only a backlog alternate too, so that what is new need not wait behind a thousand backlogs.
 */
export interface ReadyWebhooks {
  /**
   * Adds it behind the others of its kind; one that is already in stays where it is, unless it has something fresh now
   * and did not before.
   */
  add(queue: WebhookQueue): void;
  /**
   * Adds it before the others of its kind: it used its turn to read the table, and now starts what it has read. If it went
   * behind them, a crowd would have read all that it has before its first attempt.
   */
  addFirst(queue: WebhookQueue): void;
  /**
   * Takes note of what an attempt says about its webhook. One that is waiting goes on waiting among its new kind: the
   * places of one kind are not for another.
   */
  learn(queue: WebhookQueue, answered: boolean): void;
  /**
   * Gives each its turn, again and again, while there is room. A webhook that gets its turn is out until it is added again.
   * @param start returns false if it had nothing to start after all
   */
  serve(start: Start): void;
  /** When a waiting webhook may get its turn even if no attempt ends before then, by the wall clock; null: never. */
  nextTurnAt(): number | null;
  isEmpty(): boolean;
  /** Fresh deliveries of webhooks that answer: all they lack is a place among the attempts under way. */
  readonly waitingForPlace: number;
}

/** @returns whether there was something to start or to read */
type Start = (queue: WebhookQueue, line: Line) => boolean;

const lines: readonly Line[] = ["fresh", "backlog", "untried", "silent"];
const standingOf = (line: Line) => (line === "fresh" || line === "backlog" ? "proven" : line);

/**
 * How many reads and attempts for webhooks that have not answered are made in a row. Each takes 100 to 200 µs, including a new
 * connection: 384 of them held up everything else for 40 ms, and again 10 s later, when they all timed out together.
 */
const unprovenTurns = 8;
/**
 * Rest between two rows, counted from the end of the first: otherwise a server that takes longer than this for one would
 * begin the next immediately, and a thousand reads in a row took 213 ms.
 */
const restMs = 1;

export function createReadyWebhooks(clock: Clock, admission: Admission): ReadyWebhooks {
  const waiting: Record<Line, Queue<WebhookQueue>> = {
    fresh: new Queue(),
    backlog: new Queue(),
    untried: new Queue(),
    silent: new Queue(),
  };
  const row = createRow(clock);
  let lastLine: Line = "backlog";

  const lineOf = (queue: WebhookQueue): Line => {
    const standing = queue.standingAt(clock.monotonicMs());
    if (standing !== "proven") return standing;
    return queue.waitingFresh > 0 ? "fresh" : "backlog";
  };

  function join(queue: WebhookQueue, line: Line): void {
    queue.readyAs = line;
    waiting[line].add(queue);
  }

  function move(queue: WebhookQueue, from: Line, to: Line): void {
    waiting[from].remove(queue);
    join(queue, to);
  }

  const hasTurn = (line: Line) => waiting[line].length > 0 && admission.hasRoom(line);

  function serveProven(start: Start): void {
    for (;;) {
      const other = lastLine === "fresh" ? "backlog" : "fresh";
      const line = hasTurn(other) ? other : lastLine;
      const queue = hasTurn(line) ? waiting[line].take() : undefined;
      if (!queue) return;
      lastLine = line;
      const now = lineOf(queue);
      // Since it was added, it has left attempts waiting.
      if (standingOf(now) !== "proven") join(queue, now);
      else {
        queue.readyAs = null;
        start(queue, now);
      }
    }
  }

  function serveUnproven(line: "untried" | "silent", start: Start): void {
    while (admission.hasRoom(line) && row.hasTurn()) {
      const queue = waiting[line].take();
      if (!queue) return;
      queue.readyAs = null;
      if (start(queue, line)) row.take();
    }
  }

  return {
    add(queue) {
      if (queue.readyAs === null) join(queue, lineOf(queue));
      else if (queue.readyAs === "backlog" && queue.waitingFresh > 0) move(queue, "backlog", lineOf(queue));
    },
    addFirst(queue) {
      if (queue.readyAs !== null) return;
      queue.readyAs = lineOf(queue);
      waiting[queue.readyAs].addFirst(queue);
    },
    learn(queue, answered) {
      queue.answered(answered, clock.monotonicMs());
      const { readyAs } = queue;
      if (readyAs === null) return;
      const line = lineOf(queue);
      if (standingOf(line) === standingOf(readyAs)) return;
      move(queue, readyAs, line);
    },
    serve(start) {
      serveProven(start);
      serveUnproven("untried", start);
      serveUnproven("silent", start);
    },
    nextTurnAt() {
      const taken = lines.filter((line) => waiting[line].length > 0);
      if (taken.some(admission.hasRoom)) return clock.now() + restMs;
      // Young attempts that take up the room become old.
      const ageingAt = taken.length > 0 ? admission.nextAgeingAt() : null;
      return ageingAt === null ? null : Math.ceil(ageingAt - clock.monotonicMs() + clock.now());
    },
    isEmpty: () => lines.every((line) => waiting[line].length === 0),
    get waitingForPlace() {
      return waiting.fresh.reduce((sum, queue) => sum + queue.waitingFresh, 0);
    },
  };
}

/** The turns of webhooks that have not answered. */
function createRow(clock: Pick<Clock, "monotonicMs">) {
  let taken = 0;
  let lastAtMs = 0;
  return {
    hasTurn(): boolean {
      if (taken > 0 && clock.monotonicMs() - lastAtMs >= restMs) taken = 0;
      return taken < unprovenTurns;
    },
    take(): void {
      taken += 1;
      lastAtMs = clock.monotonicMs();
    },
  };
}
