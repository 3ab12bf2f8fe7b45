import { closeSync, openSync } from "node:fs";
import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import { Interrupted } from "./interrupted.ts";

/** Interaction with the user at the terminal: questions, and a line that changes in place. */

/** Asks for one line; null when nobody can answer, or the user ends the input. @throws Interrupted by Ctrl+C */
export async function askOnTerminal(question: string): Promise<string | null> {
  if (process.stdin.isTTY !== true) return null;
  return answerTo(question, createInterface({ input: process.stdin, output: process.stderr }));
}

/** Like `askOnTerminal`, but shows nothing: the terminal's own echo is off, and what readline would show is dropped. */
export async function askSecretly(question: string): Promise<string | null> {
  if (process.stdin.isTTY !== true) return null;
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true, historySize: 0 });
  // Asked only now, with the echo off: otherwise a fast answer would still be shown.
  process.stderr.write(question);
  const answer = await answerTo("", terminal);
  process.stderr.write("\n");
  return answer;
}

function answerTo(question: string, terminal: Interface): Promise<string | null> {
  return new Promise((resolve, reject) => {
    terminal.on("close", () => resolve(null));
    // While readline reads, the terminal passes Ctrl+C on as a key and nobody gets a signal.
    terminal.on("SIGINT", () => {
      process.stderr.write("\n");
      reject(new Interrupted("SIGINT"));
      terminal.close();
    });
    terminal.question(question, (answer) => {
      resolve(answer);
      terminal.close();
    });
  });
}

/** Whether the terminal that the program was started on has been closed. */
export function isTerminalGone(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return false;
  } catch {
    return true;
  }
}

export interface ProgressLine {
  /** Replaces the line; an empty one removes it. */
  show(line: string): void;
  /** Writes text where the line was; the line reappears with its next change. */
  above(text: string): void;
}

const clearLine = "\r\u001b[K";
/** For a terminal that does not report its width. */
const defaultColumns = 80;

/** Off a terminal, the line is never shown. */
export function createProgressLine(stream: NodeJS.WriteStream): ProgressLine {
  let isShown = false;
  const clear = () => {
    const text = isShown ? clearLine : "";
    isShown = false;
    return text;
  };
  return {
    show(line) {
      if (stream.isTTY !== true) return;
      const cleared = clear();
      // A line that wraps could not be removed.
      const cut = line.slice(0, (stream.columns || defaultColumns) - 1);
      stream.write(cleared + cut);
      isShown = cut !== "";
    },
    above(text) {
      const written = clear() + text;
      if (written !== "") stream.write(written);
    },
  };
}
