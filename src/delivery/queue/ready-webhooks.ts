import type { Clock } from "../../lib/clock.ts";
import type { Admission, Standing } from "./admission.ts";
import type { WebhookQueue } from "./webhook-queue.ts";

/**
 * The webhooks that could start an attempt now, and in which order they may: those that answer first, then those that are
 * new, then the silent ones; among their like one attempt each, in turn.
 */
export interface ReadyWebhooks {
  /** It comes after its like; one that is in it already stays where it is. */
  add(queue: WebhookQueue): void;
  /** What an attempt says of its webhook. One that waits goes on waiting among its new like: places of others are others'. */
  learn(queue: WebhookQueue, answered: boolean): void;
  /**
   * Gives each its turn, again and again, as long as there is room. A webhook that is given its turn is out, until it is added.
   * @param start false: it had nothing to start after all
   */
  serve(start: (queue: WebhookQueue) => boolean): void;
  /** When one that waits may have its turn though no attempt has ended until then, by the wall clock; null: never. */
  nextTurnAt(): number | null;
  isEmpty(): boolean;
  /** Fresh deliveries of webhooks that answer: they could go at once, but for a place among the attempts under way. */
  readonly waitingForPlace: number;
}

const standings: readonly Standing[] = ["proven", "untried", "silent"];

/**
 * Reads and attempts for webhooks that have not answered, in a row. Each takes 100 to 200 µs, with a connection to be made: 384
 * of them held up everybody else for 40 ms, and again 10 s later, when they all timed out together.
 */
const unprovenTurns = 8;
/**
 * Between two rows, counted from the end of the first: a server that takes longer than this for one would else begin the next
 * at once, and a thousand reads in a row took 213 ms.
 */
const restMs = 1;

export function createReadyWebhooks(clock: Clock, admission: Admission): ReadyWebhooks {
  const rings: Record<Standing, WebhookQueue[]> = { proven: [], untried: [], silent: [] };
  const row = createRow(clock);
  const mayServe = (standing: Standing) => admission.hasRoom(standing) && (standing === "proven" || row.hasTurn());

  function add(queue: WebhookQueue): void {
    if (queue.readyAs === null) join(queue, queue.standingAt(clock.monotonicMs()));
  }

  function join(queue: WebhookQueue, standing: Standing): void {
    queue.readyAs = standing;
    rings[standing].push(queue);
  }

  /** One attempt of each in turn. */
  function serveRing(standing: Standing, start: (queue: WebhookQueue) => boolean): void {
    const ring = rings[standing];
    while (ring.length > 0 && mayServe(standing)) {
      const round = ring.splice(0, ring.length);
      for (let i = 0; i < round.length; i += 1) {
        if (!mayServe(standing)) {
          ring.unshift(...round.slice(i));
          return;
        }
        const queue = round[i] as WebhookQueue;
        const now = queue.standingAt(clock.monotonicMs());
        if (standing === "proven" && now !== standing) {
          join(queue, now);
          continue;
        }
        queue.readyAs = null;
        if (start(queue) && standing !== "proven") row.take();
      }
    }
  }

  return {
    add,
    learn(queue, answered) {
      const now = clock.monotonicMs();
      queue.answered(answered, now);
      const { readyAs } = queue;
      const standing = queue.standingAt(now);
      if (readyAs === null || readyAs === standing) return;
      const ring = rings[readyAs];
      ring.splice(ring.indexOf(queue), 1);
      join(queue, standing);
    },
    serve(start) {
      for (const standing of standings) serveRing(standing, start);
    },
    nextTurnAt() {
      const waiting = standings.filter((standing) => rings[standing].length > 0);
      if (waiting.some((standing) => admission.hasRoom(standing))) return clock.now() + restMs;
      // Young attempts that take up the room become old.
      const ageingAt = waiting.length > 0 ? admission.nextAgeingAt() : null;
      return ageingAt === null ? null : Math.ceil(ageingAt - clock.monotonicMs() + clock.now());
    },
    isEmpty: () => standings.every((standing) => rings[standing].length === 0),
    get waitingForPlace() {
      return rings.proven.reduce((sum, queue) => sum + queue.waitingFresh, 0);
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
