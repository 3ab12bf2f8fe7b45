import type { Predecessor } from "../handover.ts";

/** A command's view of the outside world: environment, arguments, two streams and a user. Tests provide their own. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The command line, without the program. */
  readonly args: readonly string[];
  /** The server that this process was started to succeed; null: an ordinary start. */
  readonly predecessor: Predecessor | null;
  /** Writes one or more lines to standard output. */
  out(text: string): void;
  /** Whether much of that waits for its reader, and more would take memory. */
  isBehind(): boolean;
  /** Writes one line to standard error. */
  err(line: string): void;
  /** Whether standard output is read by a person. */
  readonly isTerminal: boolean;
  /** Asks the user for one line; null when nobody can answer. @throws Interrupted when the answer is Ctrl+C */
  ask(question: string): Promise<string | null>;
  /** Like `ask`, for a secret: what is typed is not shown. */
  askSecretly(question: string): Promise<string | null>;
  /** What is piped or redirected to standard input; null when that is a keyboard. */
  input(): AsyncIterable<Uint8Array> | null;
  /** Shows a line in place on standard error if somebody is watching; an empty one removes it. */
  progress(line: string): void;
  /** From now on, everything else that runs on this machine takes priority. */
  standBack(): void;
  /** The next signal that asks the program to end. From the first call on, signals no longer end it by default. */
  nextSignal(): Promise<EndSignal>;
  /** Called for every signal that asks for something else; from then on none of these ends the program. */
  onSignal(listener: (signal: OtherSignal) => void): void;
}

export type EndSignal = "SIGINT" | "SIGTERM";

/** By default, each of these ends a program. */
export const otherSignals = ["SIGHUP", "SIGUSR1", "SIGUSR2"] as const;
export type OtherSignal = (typeof otherSignals)[number];

/** What a shell reports for a program ended by a signal: 128 plus the signal's number. */
export const signalExitCode: Readonly<Record<EndSignal, number>> = { SIGINT: 130, SIGTERM: 143 };

/** Exit codes of all commands. `crashed` is a defect of the program (EX_SOFTWARE of sysexits.h), never the operator's. */
export const exitCode = { ok: 0, failed: 1, usage: 2, crashed: 70 } as const;
