import type { Clock } from "../../lib/clock.ts";
import { Queue } from "../../lib/queue.ts";
import { type BacklogPlaces, createBacklogPlaces } from "./backlog-places.ts";

/**
 * How many attempts may be in flight, so that receivers that hang cannot use up the places of those that answer.
 *
 * A model of 1,000 webhooks that never answer beside a healthy one: with one cap of 512 served in turn, the healthy one
 * got 33 of 600 deliveries. With 512 for young attempts and a second cap for the older ones, it got all. Webhooks that have
 * not answered may take only half of the young places, so that those that do always find one, and untried ones a quarter
 * more, so that a crowd of silent ones does not hold up a healthy one's first delivery.
 */
export const youngLimit = 512;
export const oldLimit = 4096;
export const silentYoungLimit = youngLimit / 2;
/** The rest of the old places is for those that may answer yet. */
export const silentOldLimit = (oldLimit * 3) / 4;
export const untriedYoungLimit = (youngLimit * 3) / 4;

/** Those that answer leave some, or a backlog of theirs would keep every new webhook from its first delivery. */
export const provenYoungLimit = (youngLimit * 15) / 16;

/**
 * For so long an attempt is young; what answers takes less. A crowd of new webhooks gets through 384 in this time. With 1,000 ms,
 * a healthy one among 1,000 dead waited up to 6 s for its first delivery after a restart.
 *
 * A webhook that answers counts as silent once its attempts have become old without an answer, until there is one. When 1,000
 * went down together, each had its turn as one that answers until the first attempts timed out: for 10 s, 64 healthy ones beside
 * them got 25 deliveries a second of the 200 that were due.
 */
export const youngMs = 250;

/**
 * What is known of a webhook. `proven`: its last attempt was answered, and none waits for long. `untried`: it had none so far.
 * `silent`: its last attempt got no answer, or those under way have got none yet.
 */
export type Standing = "proven" | "untried" | "silent";

/** Where a webhook waits for its turn. Of those that answer: `fresh`, when it has something straight from its commit; else `backlog`. */
export type Line = "fresh" | "backlog" | Exclude<Standing, "proven">;

/** How many young attempts to webhooks that are not proven may be under way for one more of this line to start. */
const limitOf = { untried: untriedYoungLimit, silent: silentYoungLimit } as const;

/** An attempt's place. */
export interface Place {
  readonly startedAt: number;
  readonly line: Line;
  isOld: boolean;
  left: boolean;
}

export interface Admission {
  /** Whether one more attempt may start now, of a webhook that waits in this line. */
  hasRoom(line: Line): boolean;
  enter(line: Line): Place;
  leave(place: Place): void;
  /** What attempts took by us of late: while it is long, backlogs get fewer places. */
  heed: BacklogPlaces["heed"];
  /** When the next young attempt becomes an old one, on the monotonic clock; null when none is young or none may. */
  nextAgeingAt(): number | null;
  readonly inFlight: number;
}

export function createAdmission(clock: Pick<Clock, "monotonicMs">): Admission {
  /** By start; those that were left stay until they come to the front, and old ones are no longer here. */
  const places = new Queue<Place>();
  const backlogPlaces = createBacklogPlaces(clock, provenYoungLimit);
  const young: Record<Line, number> = { fresh: 0, backlog: 0, untried: 0, silent: 0 };
  let old = 0;
  const proven = () => young.fresh + young.backlog;
  const unproven = () => young.untried + young.silent;

  function age(): void {
    const now = clock.monotonicMs();
    for (let place = places.first; place; place = places.first) {
      if (!place.left) {
        if (place.startedAt + youngMs > now || old >= oldLimit) return;
        place.isOld = true;
        young[place.line] -= 1;
        old += 1;
      }
      places.take();
    }
  }

  const fits = (line: Line) =>
    proven() + unproven() < youngLimit &&
    (line === "fresh" || line === "backlog" ? proven() < provenYoungLimit : unproven() < limitOf[line]) &&
    (line !== "backlog" || young.backlog < Math.max(backlogPlaces.limit, young.fresh)) &&
    (line !== "silent" || old < silentOldLimit);

  return {
    hasRoom(line) {
      if (fits(line)) return true;
      age();
      return fits(line);
    },
    enter(line) {
      if (line === "fresh") backlogPlaces.freshStarts();
      const place: Place = { startedAt: clock.monotonicMs(), line, isOld: false, left: false };
      places.add(place);
      young[place.line] += 1;
      if (places.length > 2 * youngLimit) age();
      return place;
    },
    leave(place) {
      place.left = true;
      if (place.isOld) old -= 1;
      else young[place.line] -= 1;
    },
    heed: backlogPlaces.heed,
    nextAgeingAt() {
      age();
      return places.first === undefined || old >= oldLimit ? null : places.first.startedAt + youngMs;
    },
    get inFlight() {
      return proven() + unproven() + old;
    },
  };
}
