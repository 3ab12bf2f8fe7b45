import { type ClientConfig, loadClientConfig } from "../../config.ts";
import { StartupError } from "../../domain/errors.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { textIn } from "../client/answer.ts";
import { givenUp, TemporaryFailure } from "../client/failure.ts";
import { createOutage } from "../client/outage.ts";
import { createPatience } from "../client/patience.ts";
import { createServerClient } from "../client/server.ts";
import { signInDetails, warnOfPlainHttp } from "../client/sign-in.ts";
import type { Command } from "../command.ts";
import { count } from "../count.ts";
import { abortOnSignal, Interrupted } from "../interrupted.ts";
import { exitCode, type Io, signalExitCode } from "../io.ts";
import { fetchKey, readKeySource } from "./api-key.ts";
import { createBatchSender } from "./batch-sender.ts";
import { faultOf } from "./fault.ts";
import { readSendOptions, type SendOptions, sendFlags } from "./options.ts";
import { createPoster, type Post } from "./poster.ts";
import { sendLines } from "./send-lines.ts";
import { createTally } from "./tally.ts";

export const sendCommand: Command = createSendCommand({ clock: systemClock });

export function createSendCommand({ clock }: { clock: Clock }): Command {
  return {
    words: ["send"],
    operands: [],
    restName: "EVENT",
    flags: sendFlags,
    summary: "Send an event, a file, or lines from standard input",
    details: `EVENT is a JSON object; without it, each line of standard input is one event. The bytes
are sent unchanged. Prints the event's id; for lines, a summary on standard error and the
number of each line that is not an event. While the server is unavailable, requests are
retried with an idempotency key, so that no event is accepted twice. Exit code 0:
everything was accepted.
Sends with POSTRIDER_API_KEY, or with the key of the account that it signs in to.
${signInDetails}`,
    async run({ operands, flags }, io) {
      const options = readSendOptions(operands, flags, io);
      const config = loadClientConfig(io.env, flags, io.err);
      return send(options, flags.has("--login") ? { ...config, apiKey: null } : config, io, clock);
    },
  };
}

async function send(options: SendOptions, config: ClientConfig, io: Io, clock: Clock): Promise<number> {
  const { what, bodies, retryForMs } = options;
  // Checked before anyone is asked for a key.
  const fault = what.kind === "event" ? faultOf(what, bodies.longestPayload) : null;
  if (fault !== null) throw new StartupError(withRemedy(fault, options.remedy()));
  warnOfPlainHttp(config.url, io);
  const keySource = await readKeySource(config, io);
  const { signal } = abortOnSignal(io);
  const patience = createPatience({
    clock,
    signal,
    outage: createOutage(config.url, io, retryForMs),
    forMs: retryForMs,
  });
  const client = (ends: AbortSignal) => createServerClient({ url: config.url, clock, signal: ends });
  try {
    const apiKey = await fetchKey(keySource, { server: client(signal), clock, patience });
    // A signal ends pauses and the reading, but not a request under way: its answer tells whether the events were accepted.
    const post = createPoster({ server: client(new AbortController().signal), apiKey, patience, retryForMs });
    const sending = what.kind === "event" ? sendEvent(what.bytes, post) : sendAll(what.input, post);
    const code = await Promise.race([sending, secondSignal()]);
    return code === exitCode.failed ? codeOf(signal.reason) : code;
  } catch (error) {
    if (error instanceof Interrupted) return codeOf(error);
    if (!(error instanceof TemporaryFailure)) throw error;
    throw givenUp(config.url, error, retryForMs);
  }

  async function sendEvent(bytes: Uint8Array, post: Post): Promise<number> {
    const outcome = await post("/v1/ingest", bodies.event(bytes));
    if (outcome.kind === "accepted") {
      const { text, json } = outcome.reply;
      io.out(options.json ? text : (textIn(json, "eventId") ?? text));
      return exitCode.ok;
    }
    const doubt = outcome.kind === "stopped" && outcome.mayHaveArrived ? " The event may have been accepted." : "";
    io.err(`postrider: ${outcome.message}${doubt}`);
    return exitCode.failed;
  }

  async function sendAll(input: AsyncIterable<Uint8Array>, post: Post): Promise<number> {
    const tally = createTally({ io, clock, json: options.json });
    const sender = createBatchSender({ ...options, post, tally });
    const { stopped, lastLine } = await sendLines({ ...options, input, sender, tally, clock, signal });
    const reason = sender.haltReason ?? stopped;
    const unread = stopped === null ? "" : ` ${unreadWords(lastLine)}`;
    io.progress("");
    if (reason !== null) io.err(`postrider: ${reason}`);
    // Not a failure, since a pipe may have nothing to pass on; but its writer may have failed.
    if (reason === null && tally.isEmpty) io.err("Nothing to send: standard input had no events.");
    else io.err(`${tally.summary()}${unread}`);
    return reason === null && tally.isClean ? exitCode.ok : exitCode.failed;
  }

  async function secondSignal(): Promise<number> {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return signalExitCode[await io.nextSignal()];
  }
}

const unreadWords = (lastLine: number) =>
  lastLine === 0 ? "No line was read." : `Nothing after line ${count(lastLine)} was read.`;

const withRemedy = (fault: string, remedy: string | null) => (remedy === null ? fault : `${fault} Try: ${remedy}`);

/** The exit code a shell expects of a program that a signal has ended early. */
const codeOf = (reason: unknown): number =>
  reason instanceof Interrupted ? signalExitCode[reason.by] : exitCode.failed;
