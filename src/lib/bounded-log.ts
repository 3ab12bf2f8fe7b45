import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/** Lines of one event name that are written in a minute. A flood says no more than its first few hundred lines do. */
export const linesPerMinute = 300;

const minuteMs = 60_000;

export interface BoundedLogOptions {
  log: Log;
  clock: Pick<Clock, "monotonicMs" | "after">;
  /** Lines that are never left out, by their event name. */
  always(event: string): boolean;
  /** Whether what was written waits for its reader: lines of every level are left out then. @default never */
  isBehind?(): boolean;
  /** For metrics: after every line that was left out. */
  onLeftOut(): void;
}

/**
 * A log that strangers cannot fill: it writes a limited number of lines a minute for each event name, then one that says
 * how many were left out. Lines at level debug are limited only by their reader: with one that stood still, 300,000 requests took
 * 230 MB.
 */
export function createBoundedLog({ log, clock, always, isBehind = () => false, onLeftOut }: BoundedLogOptions): Log {
  const minutes = new Map<string, { until: number; written: number; leftOut: number }>();

  function tell(event: string, minute: { leftOut: number }): void {
    log.write("warn", "log.lines_left_out", { of: event, lines: minute.leftOut });
    minute.leftOut = 0;
  }

  return {
    enabled: log.enabled,
    write(level, event, fields) {
      if (!log.enabled(level) || always(event)) return log.write(level, event, fields);
      const hasReader = !isBehind();
      if (level === "debug" && hasReader) return log.write(level, event, fields);
      const now = clock.monotonicMs();
      let minute = minutes.get(event);
      if (minute === undefined || now >= minute.until) {
        if (minute !== undefined && minute.leftOut > 0) tell(event, minute);
        minute = { until: now + minuteMs, written: 0, leftOut: 0 };
        minutes.set(event, minute);
      }
      if (hasReader && minute.written < linesPerMinute) {
        minute.written += 1;
        return log.write(level, event, fields);
      }
      const ending = minute;
      if (ending.leftOut === 0) {
        clock.after(ending.until - now, () => {
          if (ending.leftOut > 0) tell(event, ending);
        });
      }
      ending.leftOut += 1;
      onLeftOut();
    },
  };
}
