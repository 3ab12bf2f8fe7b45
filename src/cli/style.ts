import type { Io } from "./io.ts";

/** Text styles for people. Off a terminal, each returns its text unchanged. */
export interface Style {
  bold(text: string): string;
  faint(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

const mark = (on: boolean, start: number, end: number) => (text: string) =>
  on ? `\u001b[${start}m${text}\u001b[${end}m` : text;

/** Colours only on a terminal, and only where they are wanted (https://no-color.org) and understood. */
export function createStyle({ isTerminal, env }: Pick<Io, "isTerminal" | "env">): Style {
  const on = isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
  return { bold: mark(on, 1, 22), faint: mark(on, 2, 22), good: mark(on, 32, 39), bad: mark(on, 31, 39) };
}
