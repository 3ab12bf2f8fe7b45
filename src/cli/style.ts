import type { Io } from "./io.ts";

/** Marks for people. Off a terminal every one returns its text unchanged. */
export interface Style {
  bold(text: string): string;
  faint(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

const mark = (on: boolean, start: number, end: number) => (text: string) =>
  on ? `\u001b[${start}m${text}\u001b[${end}m` : text;

/** Colours only on a terminal, and not where they are unwanted (https://no-color.org) or not understood. */
export function createStyle({ isTerminal, env }: Pick<Io, "isTerminal" | "env">): Style {
  const on = isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
  return { bold: mark(on, 1, 22), faint: mark(on, 2, 22), good: mark(on, 32, 39), bad: mark(on, 31, 39) };
}
