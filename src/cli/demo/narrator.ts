import type { Clock } from "../../lib/clock.ts";
import { formatDuration } from "../../lib/duration.ts";
import { messageOf } from "../../lib/error-message.ts";
import type { Io } from "../io.ts";
import { createStyle } from "../style.ts";

/** Narrates the demo, one line per step, with the time that the step took. */
export interface Narrator {
  chapter(title: string): void;
  /** Runs one step and prints what it returns; on failure prints why, and rethrows. */
  step<T extends string | { said: string }>(label: string, run: () => T | Promise<T>): Promise<T>;
  /** Prints a line between the steps. */
  note(label: string, text: string): void;
  /** On a terminal, shows what is being waited for while it takes. */
  waiting<T>(what: string, awaited: Promise<T>): Promise<T>;
  end(didHold: boolean, text: string): void;
  /** Says that the demo is interrupted before its end. What fails from then on is no check, and is not told. */
  interrupt(): void;
}

const labelWidth = 11;
const textWidth = 70;

const progressEveryMs = 1_000;

export function createNarrator(io: Io, { monotonicMs, after }: Pick<Clock, "monotonicMs" | "after">): Narrator {
  const style = createStyle(io);
  const label = (name: string) => style.faint(name.padEnd(labelWidth));
  const good = style.good("✓");
  const bad = style.bad("✗");
  let isOver = false;
  const tell = (line: string) => {
    if (!isOver) io.out(line);
  };
  const endWith = (line: string) => {
    tell(line);
    isOver = true;
  };

  return {
    chapter: (title) => tell(`\n${style.bold(title)}`),
    async step(name, run) {
      const startedAt = monotonicMs();
      try {
        const result = await run();
        const took = formatDuration(monotonicMs() - startedAt);
        const said = typeof result === "string" ? result : result.said;
        tell(`  ${good} ${label(name)} ${said.padEnd(textWidth)} ${style.faint(took.padStart(7))}`);
        return result;
      } catch (error) {
        tell(`  ${bad} ${label(name)} ${messageOf(error)}`);
        throw error;
      }
    },
    note: (name, text) => tell(`  ${style.faint("·")} ${label(name)} ${text}`),
    async waiting(what, awaited) {
      const startedAt = monotonicMs();
      let cancel = () => {};
      function show(): void {
        if (isOver) return;
        io.progress(`    ${what}: ${Math.round((monotonicMs() - startedAt) / 1000)} s`);
        cancel = after(progressEveryMs, show);
      }
      show();
      try {
        return await awaited;
      } finally {
        cancel();
        io.progress("");
      }
    },
    end: (didHold, text) => endWith(`\n${didHold ? good : bad} ${style.bold(text)}`),
    interrupt() {
      if (!isOver) io.progress("");
      endWith(`\n${style.bold("Interrupted.")}`);
    },
  };
}
