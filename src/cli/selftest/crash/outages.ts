import type { Clock } from "../../../lib/clock.ts";
import { WrongAnswer } from "../rig/account.ts";

/** Keeps track of when a server may report that it could not reach its database. */
export interface Outages {
  /** An outage begins now. @returns a function that ends it */
  begin(): () => void;
  /** Whether an outage is under way, or may only be noticed now. */
  isNoticed(): boolean;
  /** Whether an answer with this status merely leaves open whether its request was carried out. */
  excuses(status: number): boolean;
  /** Whether an error in the log is no fault. */
  isExpected(line: string): boolean;
}

/** Statuses of a server that has lost its database, and of one whose connection was cut before the database answered. */
const outage = 503;
const unknownOutcome = 500;

/** A cut connection may not be noticed until the next request, and a request fails at its deadline at the latest. */
const noticedByMs = 30_000;

/** Work that resumes by itself once the database is back. */
const interrupted: ReadonlySet<unknown> = new Set(["delivery.load_failed", "delivery.broken", "replay.not_queued"]);
const lostOutcome = "The connection to the database ended before it answered, so it is not known whether it wrote";
const reasons: ReadonlySet<unknown> = new Set([
  "The database does not answer at the moment; retry later.",
  // All servers come back at once, while the database still ends their former connections.
  "The database has no connection free at the moment; retry later.",
  lostOutcome,
]);

/** Whether a failed request does not count against the server: there was no answer, or one that is excused. */
export const isExcused = (error: unknown, { excuses }: Pick<Outages, "excuses">): boolean =>
  !(error instanceof WrongAnswer) || excuses(error.status);

export function createOutages(clock: Clock): Outages {
  let underWay = 0;
  let lastEndedAt = Number.NEGATIVE_INFINITY;
  const isNoticed = () => underWay > 0 || clock.monotonicMs() - lastEndedAt <= noticedByMs;
  return {
    isNoticed,
    begin() {
      underWay += 1;
      return () => {
        underWay -= 1;
        lastEndedAt = clock.monotonicMs();
      };
    },
    excuses: (status) => status === outage || (status === unknownOutcome && isNoticed()),
    isExpected(line) {
      if (!isNoticed()) return false;
      const { event, error } = JSON.parse(line) as Record<string, unknown>;
      // Its client gets a 500, since it is neither stored nor refused; the ledger treats it as a request without an answer.
      if (event === "request.failed") return String(error).includes(lostOutcome);
      return interrupted.has(event) && reasons.has(error);
    },
  };
}
