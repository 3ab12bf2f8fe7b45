import type { Predecessor } from "../handover.ts";

/** What a command has of the world: its arguments' environment, two streams and a person. Tests give their own. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The command line, without the program. */
  readonly args: readonly string[];
  /** The server that this process was started to succeed; null: it is a start like any other. */
  readonly predecessor: Predecessor | null;
  /** Writes one line, or several, to standard output. */
  out(text: string): void;
  /** Writes one line to standard error. */
  err(line: string): void;
  /** A person reads standard output. */
  readonly isTerminal: boolean;
  /** Asks the person for one line; null when there is nobody to answer. */
  ask(question: string): Promise<string | null>;
  /** As `ask`, for a secret: what is typed is not shown. */
  askSecretly(question: string): Promise<string | null>;
  /** What is piped or redirected to standard input; null when there is a person's keyboard instead. */
  input(): AsyncIterable<Uint8Array> | null;
  /** Shows a line in place on standard error if a person watches it; an empty one takes it away. */
  progress(line: string): void;
  /** From now on whatever else runs on this machine comes first. */
  standBack(): void;
  /** The next signal that asks the program to end. From the first call on, signals no longer end it by themselves. */
  nextSignal(): Promise<EndSignal>;
  /** Told of every signal that asks for something else; from then on none of these ends the program. */
  onSignal(listener: (signal: OtherSignal) => void): void;
}

export type EndSignal = "SIGINT" | "SIGTERM";

/** By default each of them ends a program. */
export const otherSignals = ["SIGHUP", "SIGUSR1", "SIGUSR2"] as const;
export type OtherSignal = (typeof otherSignals)[number];

/** What a shell reports for a program that a signal has ended: 128 and the signal's number. */
export const signalExitCode: Readonly<Record<EndSignal, number>> = { SIGINT: 130, SIGTERM: 143 };

/** Exit codes of all commands. `crashed` is a defect of the program (EX_SOFTWARE of sysexits.h), never the operator's. */
export const exitCode = { ok: 0, failed: 1, usage: 2, crashed: 70 } as const;
