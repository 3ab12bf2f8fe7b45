import { formatIso } from "../lib/iso-time.ts";
import type { Log } from "../lib/log.ts";

/** Time servers correct anything smaller than this. */
const worthTellingMs = 3_600_000;

/**
 * Logs once that events carry times ahead of the clock, and until when; and again when that is over. It happens after the
 * server, possibly in an earlier run, has trusted a clock that was ahead: ids only grow, so they wait for the clock to catch
 * up.
 */
export function createIdClockWatch(log: Log, now: () => number) {
  let isAhead = false;

  return function look(aheadMs: number): void {
    if (!isAhead && aheadMs >= worthTellingMs) {
      isAhead = true;
      log.write("warn", "clock.behind_ids", {
        until: formatIso(now() + aheadMs),
        message:
          "The clock is behind the latest stored event. Ids only increase, so new events carry times ahead of the clock, and " +
          "count towards the month of those times, until it catches up. Try: check the machine's clock.",
      });
    } else if (isAhead && aheadMs <= 0) {
      isAhead = false;
      log.write("info", "clock.caught_up");
    }
  };
}
