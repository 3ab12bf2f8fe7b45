import type { Clock } from "../../lib/clock.ts";
import { Queue } from "../../lib/queue.ts";
import { type BacklogPlaces, createBacklogPlaces } from "./backlog-places.ts";

/**
 * How many attempts may be in flight, so that hanging receivers cannot use up the places of those that answer.
 *
 * In a model of 1,000 webhooks that never answer alongside a healthy one, one cap of 512 with everyone served in turn
 * gave the healthy one 33 of 600 deliveries. With 512 for young attempts and a second cap for the older ones, it got all.
 * Webhooks that have not answered may take only half of the young places, so that those that do always find one; untried
 * ones may take a quarter more, so that a crowd of silent ones does not hold up a healthy one's first delivery.
 */
export const youngLimit = 512;
export const oldLimit = 4096;
export const silentYoungLimit = youngLimit / 2;
/** The rest of the old places is for webhooks that may yet answer. */
export const silentOldLimit = (oldLimit * 3) / 4;
export const untriedYoungLimit = (youngLimit * 3) / 4;

/** Webhooks that answer leave some places, or their backlog would keep every new webhook from its first delivery. */
export const provenYoungLimit = (youngLimit * 15) / 16;

/**
 * How long an attempt is young; one that is answered takes less. A crowd of new webhooks gets through 384 in this time.
 * With 1,000 ms, a healthy one among 1,000 dead ones waited up to 6 s for its first delivery after a restart.
 *
 * A webhook that answers counts as silent once its attempts have become old without an answer, until there is one. When
 * 1,000 went down together without this rule, each kept its turn as one that answers until its first attempts timed out:
 * for 10 s, 64 healthy ones alongside them got 25 deliveries a second of the 200 that were due.
 */
export const youngMs = 250;

/**
 * What is known about a webhook. `proven`: its last attempt was answered, and none has been waiting long. `untried`: it
 * has had none so far. `silent`: its last attempt got no answer, or those under way have had none yet.
 */
export type Standing = "proven" | "untried" | "silent";

/**
 * The line in which a webhook waits for its turn. One that answers waits in `fresh` if it has something straight from its
 * commit, otherwise in `backlog`.
 */
export type Line = "fresh" | "backlog" | Exclude<Standing, "proven">;

/**
 * One more attempt of this line may start while fewer young attempts than this are under way to webhooks that are not proven.
 */
const limitOf = { untried: untriedYoungLimit, silent: silentYoungLimit } as const;

/** An attempt's place. */
export interface Place {
  readonly startedAt: number;
  readonly line: Line;
  isOld: boolean;
  left: boolean;
}

export interface Admission {
  /** Whether one more attempt may start now for a webhook that waits in this line. */
  hasRoom(line: Line): boolean;
  enter(line: Line): Place;
  leave(place: Place): void;
  /** Takes note of how much of our own time recent attempts took: while it is long, backlogs get fewer places. */
  heed: BacklogPlaces["heed"];
  /** When the next young attempt becomes an old one, on the monotonic clock; null if none is young or none may become old. */
  nextAgeingAt(): number | null;
  readonly inFlight: number;
}

export function createAdmission(clock: Pick<Clock, "monotonicMs">): Admission {
  /** In order of start; places that were left stay until they reach the front, and old ones are no longer here. */
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
