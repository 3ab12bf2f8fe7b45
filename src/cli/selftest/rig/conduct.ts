import { rmSync } from "node:fs";
import { StartupError } from "../../../domain/errors.ts";
import { systemClock as clock } from "../../../lib/clock.ts";
import { messageOf } from "../../../lib/error-message.ts";
import { exitCode, type Io, signalExitCode } from "../../io.ts";
import { type Faults, noteFault } from "./ledger.ts";
import { describeMachine, describeVersions, type Pair, writeJson, writeSheet } from "./report.ts";

/** One run of a self-test. */
export interface Trial<Figures> {
  readonly figures: Figures;
  readonly faults: Faults;
  run(): Promise<void>;
  /** Ends whatever is running, no matter what happened. */
  end(): Promise<void>;
}

export interface Plan<Figures> {
  readonly title: string;
  /** The command that repeats it. */
  readonly command: string;
  readonly seed: number;
  /** Contains everything that belongs to the test. */
  readonly folder: string;
  readonly trial: Trial<Figures>;
  /** What was done to the server. */
  readonly settings: object;
  /** What everything amounts to if nothing was wrong. */
  verdict(figures: Figures): string;
  /** The figures, for people. */
  pairs(figures: Figures): Pair[];
}

/**
 * Runs a self-test to its end, prints what it found and what machine it ran on, and leaves nothing behind, unless something
 * was wrong: then the folder stays.
 * @returns the exit code
 * @throws StartupError when there is nothing to test
 */
export async function conduct<Figures extends { backend: string }>(
  { title, command, seed, folder, trial, settings, verdict, pairs }: Plan<Figures>,
  io: Io,
  asJson: boolean,
): Promise<number> {
  const { figures, faults } = trial;
  const machine = describeMachine(folder);
  const startedAt = clock.monotonicMs();
  let hasBegun = true;
  const interrupted = io.nextSignal().then((signal) => signalExitCode[signal]);
  try {
    const code = await Promise.race([attempt(trial), interrupted]);
    if (code !== null) return code;
  } catch (error) {
    hasBegun = false;
    throw error;
  } finally {
    await trial.end();
    io.progress("");
    if (faults.count === 0 || !hasBegun) rmSync(folder, { recursive: true, force: true });
  }
  const result = {
    title,
    command,
    verdict: verdict(figures),
    seed,
    tookMs: clock.monotonicMs() - startedAt,
    machine: { ...machine, versions: describeVersions(figures.backend) },
    settings,
    figures,
    faults,
  };
  io.out(asJson ? writeJson(result) : writeSheet(result, pairs(figures), io));
  return faults.count === 0 ? exitCode.ok : exitCode.failed;
}

/** A test that cannot go on is a fault like any other. */
async function attempt({ run, faults }: Trial<unknown>): Promise<null> {
  try {
    await run();
  } catch (error) {
    if (error instanceof StartupError) throw error;
    noteFault(faults, `the test could not continue: ${messageOf(error)}`);
  }
  return null;
}
