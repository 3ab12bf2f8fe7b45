import type { Clock } from "../../lib/clock.ts";
import { count, counted } from "../count.ts";
import type { Io } from "../io.ts";
import type { Line } from "./lines.ts";

/** Counts and reports what became of each line. */
export interface Tally {
  accepted(lines: readonly Line[], eventIds: readonly string[]): void;
  /** The line is not an event that the server would accept. */
  refused(line: Line, reason: string): void;
  /** @param mayHaveArrived whether the server may have accepted them, in a request whose answer was lost */
  notSent(lines: readonly Line[], reason: string, mayHaveArrived: boolean): void;
  /** Whether every line was accepted. */
  readonly isClean: boolean;
  /** Whether there was no line at all. */
  readonly isEmpty: boolean;
  summary(): string;
}

export interface TallyOptions {
  io: Io;
  clock: Clock;
  json: boolean;
}

const progressEveryMs = 200;

export function createTally({ io, clock, json }: TallyOptions): Tally {
  const startedAtMs = clock.monotonicMs();
  const counts = { accepted: 0, refused: 0, unsent: 0, unconfirmed: 0 };
  let shownAtMs = Number.NEGATIVE_INFINITY;
  const failures = () => counts.refused + counts.unsent + counts.unconfirmed;

  function show(): void {
    const nowMs = clock.monotonicMs();
    if (nowMs - shownAtMs < progressEveryMs) return;
    shownAtMs = nowMs;
    const perSecond = counts.accepted / Math.max(0.001, (nowMs - startedAtMs) / 1000);
    io.progress(
      `${count(counts.accepted)} sent, ${count(Math.round(perSecond))} a second, ${count(failures())} failed`,
    );
  }

  const print = (line: Line, rest: Record<string, unknown>) => io.out(JSON.stringify({ line: line.number, ...rest }));

  return {
    accepted(lines, eventIds) {
      counts.accepted += lines.length;
      if (json) for (const [i, line] of lines.entries()) print(line, { eventId: eventIds[i] });
      show();
    },
    refused(line, reason) {
      counts.refused += 1;
      if (json) print(line, { error: reason });
      else io.err(`Line ${line.number} was refused: ${reason}`);
      show();
    },
    notSent(lines, reason, mayHaveArrived) {
      counts[mayHaveArrived ? "unconfirmed" : "unsent"] += lines.length;
      if (json) for (const line of lines) print(line, { error: reason, mayHaveArrived });
      show();
    },
    get isClean() {
      return failures() === 0;
    },
    get isEmpty() {
      return counts.accepted + failures() === 0;
    },
    summary() {
      const { accepted, refused, unsent, unconfirmed } = counts;
      const open = unconfirmed > 0 ? `, ${count(unconfirmed)} possibly accepted` : "";
      return `${counted(accepted, "event")} accepted, ${count(refused)} refused, ${count(unsent)} not sent${open}.`;
    },
  };
}
