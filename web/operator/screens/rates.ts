import type { Counts, Status } from "../api/types.ts";

/** One reading of the counters. They start at 0 with the server. */
export interface Look extends Pick<Counts, "events" | "delivered"> {
  /** In ms. */
  readonly at: number;
  readonly startedAt: string;
}

export interface Rates {
  /** Per second, over the latest readings; null before the second one. */
  readonly events: number | null;
  readonly delivered: number | null;
  readonly eventsOverTime: readonly number[];
  readonly deliveredOverTime: readonly number[];
}

/** Five minutes at one reading every 3 s. */
const kept = 100;

/** Counts from after a restart cannot be compared with counts from before it. */
export function addLook(looks: readonly Look[], { now, started_at: startedAt, since_start }: Status): readonly Look[] {
  const { events, delivered } = since_start;
  const look = { at: Date.parse(now), startedAt, events, delivered };
  const before = looks.filter((one) => one.startedAt === startedAt && one.at < look.at);
  return [...before.slice(1 - kept), look];
}

export function ratesOf(looks: readonly Look[]): Rates {
  const over = (of: "events" | "delivered") =>
    looks.slice(1).map((look, i) => {
      const before = looks[i] as Look;
      return ((look[of] - before[of]) * 1000) / (look.at - before.at);
    });
  const [eventsOverTime, deliveredOverTime] = [over("events"), over("delivered")];
  return {
    events: eventsOverTime.at(-1) ?? null,
    delivered: deliveredOverTime.at(-1) ?? null,
    eventsOverTime,
    deliveredOverTime,
  };
}
