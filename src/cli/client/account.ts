import { loadClientConfig } from "../../config.ts";
import type { Clock } from "../../lib/clock.ts";
import { abortOnSignal, Interrupted } from "../interrupted.ts";
import { type Io, signalExitCode } from "../io.ts";
import { type Call, type CallOnce, createCall, createCallOnce } from "./call.ts";
import { givenUp, TemporaryFailure } from "./failure.ts";
import { createOutage } from "./outage.ts";
import { createPatience } from "./patience.ts";
import { createServerClient } from "./server.ts";
import { openSession } from "./session.ts";
import { readCredentials, warnOfPlainHttp } from "./sign-in.ts";

/** A signed-in account, for commands that make requests to a server and exit. */
export interface Account {
  /** The server's base address. */
  readonly url: string;
  /** Retries for half a minute while the server is away. */
  readonly call: Call;
  /** Like `call`, but retries for as long as it takes. */
  readonly callPatiently: Call;
  readonly callOnce: CallOnce;
  /** Where the server shows an event. */
  linkTo(eventId: string): string;
  /** Aborts when the user asks to stop. */
  readonly signal: AbortSignal;
}

export interface AccountDeps {
  io: Io;
  clock: Clock;
  flags: ReadonlyMap<string, string>;
}

/** Short, because a person is waiting. */
const patienceMs = 30_000;

/**
 * Signs in and runs the command's work.
 * @returns its exit code, or that of the signal that ended it
 * @throws StartupError with what to do
 */
export async function withAccount(
  { io, clock, flags }: AccountDeps,
  work: (account: Account) => Promise<number>,
): Promise<number> {
  const config = loadClientConfig(io.env, flags, io.err);
  const credentials = await readCredentials(config, io);
  warnOfPlainHttp(config.url, io);
  const { signal } = abortOnSignal(io);
  const server = createServerClient({ url: config.url, clock, signal });
  const { url } = server;
  const patience = createPatience({ clock, signal, outage: createOutage(url, io, patienceMs), forMs: patienceMs });
  const endless = createPatience({ clock, signal, outage: createOutage(url, io) });
  try {
    const session = await openSession(credentials, { server, clock, patience });
    try {
      return await work({
        url,
        call: createCall({ server, session, patience }),
        callPatiently: createCall({ server, session, patience: endless }),
        callOnce: createCallOnce({ server, session, patience }),
        linkTo: (eventId) => `${url}/events/${eventId}`,
        signal,
      });
    } finally {
      session.close();
    }
  } catch (error) {
    if (error instanceof Interrupted) return signalExitCode[error.by];
    if (!(error instanceof TemporaryFailure)) throw error;
    throw givenUp(url, error, patienceMs);
  }
}
