import type { Clock } from "../lib/clock.ts";

/**
 * How many attempts may be in flight, so that receivers that hang cannot use up the places of those that answer.
 *
 * A model of 1,000 webhooks that never answer beside a healthy one: with one cap of 512 served in turn, the healthy one
 * got 33 of 600 deliveries. With 512 for attempts younger than a second and a second cap for the older ones, it got all.
 * Webhooks that have not answered may take only half of the young places, so that those that do always find one, and new
 * webhooks a quarter more, so that a crowd of dead ones does not hold up a healthy one's first delivery.
 */
export const youngLimit = 512;
export const oldLimit = 4096;
export const unprovenYoungLimit = youngLimit / 2;
/** A webhook with nothing in flight is let in before the second attempt to one that has not answered the first. */
export const untriedYoungLimit = (youngLimit * 3) / 4;
const youngForMs = 1000;

/**
 * What is known of a webhook. `proven`: its last attempt was answered. `untried`: not that, and nothing is in flight to it.
 * `unproven`: something is in flight to it, and nobody knows whether it will be answered.
 */
export type Standing = "proven" | "untried" | "unproven";

/** How many young attempts to webhooks that are not proven may be under way for one more of this standing to start. */
const limitOf: Record<Standing, number> = {
  proven: Number.POSITIVE_INFINITY,
  untried: untriedYoungLimit,
  unproven: unprovenYoungLimit,
};

/** An attempt's place. */
export interface Place {
  readonly startedAt: number;
  readonly proven: boolean;
  isOld: boolean;
  left: boolean;
}

export interface Admission {
  /** Whether one more attempt may start now, to a webhook of this standing. */
  hasRoom(standing: Standing): boolean;
  enter(proven: boolean): Place;
  leave(place: Place): void;
  /** When the next young attempt becomes an old one, on the monotonic clock; null when none is young or none may. */
  nextAgeingAt(): number | null;
  readonly inFlight: number;
}

export function createAdmission(clock: Pick<Clock, "monotonicMs">): Admission {
  let young = 0;
  let unprovenYoung = 0;
  let old = 0;
  /** Places by start; those that were left stay until they come to the front. */
  let places: Place[] = [];
  let front = 0;

  function age(): void {
    const now = clock.monotonicMs();
    for (;;) {
      const place = places[front];
      if (!place) break;
      if (!place.left) {
        if (place.startedAt + youngForMs > now || old >= oldLimit) break;
        place.isOld = true;
        young -= 1;
        if (!place.proven) unprovenYoung -= 1;
        old += 1;
      }
      front += 1;
    }
    if (front > 4096 && front * 2 > places.length) {
      places = places.slice(front);
      front = 0;
    }
  }

  return {
    hasRoom(standing) {
      if (young < youngLimit && unprovenYoung < limitOf[standing]) return true;
      age();
      return young < youngLimit && unprovenYoung < limitOf[standing];
    },
    enter(proven) {
      const place: Place = { startedAt: clock.monotonicMs(), proven, isOld: false, left: false };
      places.push(place);
      young += 1;
      if (!proven) unprovenYoung += 1;
      if (places.length - front > 2 * youngLimit) age();
      return place;
    },
    leave(place) {
      place.left = true;
      if (place.isOld) {
        old -= 1;
        return;
      }
      young -= 1;
      if (!place.proven) unprovenYoung -= 1;
    },
    nextAgeingAt() {
      age();
      const place = places[front];
      return place && old < oldLimit ? place.startedAt + youngForMs : null;
    },
    get inFlight() {
      return young + old;
    },
  };
}
