import { type ClientConfig, loadClientConfig } from "../../config.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { formatIso } from "../../lib/iso-time.ts";
import { createCall } from "../client/call.ts";
import { createGet } from "../client/get.ts";
import { createOutage } from "../client/outage.ts";
import { createPatience } from "../client/patience.ts";
import { createServerClient } from "../client/server.ts";
import { openSession } from "../client/session.ts";
import { readCredentials, signInDetails, warnOfPlainHttp } from "../client/sign-in.ts";
import type { Command } from "../command.ts";
import { abortOnSignal, Interrupted } from "../interrupted.ts";
import { exitCode, type Io, signalExitCode } from "../io.ts";
import { createFetchDelivery } from "./fetch-delivery.ts";
import { followStream } from "./follow.ts";
import { createForwarder } from "./forward.ts";
import { createHistory, type History } from "./history.ts";
import { type ListenOptions, listenFlags, readListenOptions, type Start, startAt } from "./options.ts";
import { createReport } from "./report.ts";
import { createSource } from "./source.ts";

export const listenCommand: Command = createListenCommand({ clock: systemClock });

export function createListenCommand({ clock }: { clock: Clock }): Command {
  return {
    words: ["listen"],
    operands: [],
    flags: listenFlags,
    summary: "Forward events to an address on this machine as they arrive",
    details: `Follows the account's stream and posts every event to the address, with the headers and
body that a webhook would get, signatures included, and the same ten-second limit. The
account needs no webhook, this machine need not be reachable from outside, and nothing
on the server changes. After a lost connection it catches up, in order and without
repeats. Prints time, response, duration and a link to the event; Ctrl+C ends it with 0.
${signInDetails}`,
    async run({ flags }, io) {
      const options = readListenOptions(flags, clock.now());
      try {
        return await listen(options, loadClientConfig(io.env, flags, io.err), io, clock);
      } catch (error) {
        // Interrupted before there was anything to listen to.
        if (error instanceof Interrupted) return signalExitCode[error.by];
        throw error;
      }
    },
  };
}

async function listen(options: ListenOptions, config: ClientConfig, io: Io, clock: Clock): Promise<number> {
  const credentials = await readCredentials(config, io);
  warnOfPlainHttp(config.url, io);
  const stop = abortOnSignal(io);
  const { signal } = stop;
  const server = createServerClient({ url: config.url, clock, signal });
  const outage = createOutage(server.url, io);
  const patience = createPatience({ clock, signal, outage });
  const session = await openSession(credentials, { server, clock, patience });
  const deps = { server, session, patience };
  const history = createHistory({ get: createGet(deps) });
  // Determined before the stream is open, so that the history covers whatever comes in between.
  const serverTime = session.serverTime ?? clock.now();
  const openedAtMs = clock.monotonicMs();
  const serverNow = () => serverTime + Math.floor(clock.monotonicMs() - openedAtMs);
  const start = options.since ?? (await startNow(history, serverTime));

  const linkTo = (eventId: string) => `${server.url}/events/${eventId}`;
  const report = createReport({ ...options, io, now: clock.now, linkTo });
  const source = createSource({ kinds: options.kinds, history, start, serverNow });
  const forwarder = createForwarder({
    ...options,
    source,
    fetchDelivery: createFetchDelivery({ server, call: createCall(deps) }),
    clock,
    onForwarded: report.forwarded,
    signal,
  });
  const onOpen = () => io.err(welcome(options, server.url, session.tenantId));
  const following = followStream({ server, session, clock, outage, source, onOpen, signal });
  const areIds = options.kinds.has("accepted") && options.kinds.size === 1;
  // Deliveries do not end in the order of event ids.
  const whereToContinue = () =>
    areIds ? (forwarder.forwardedThrough ?? start.afterId) : formatIso(source.resumeFromMs(forwarder.unforwarded()));
  try {
    return await Promise.race([following, forwarder.run()]);
  } catch (error) {
    stop.abort(error);
    // Requests under way may finish; a second signal does not wait for them.
    await Promise.race([forwarder.whenIdle(), io.nextSignal()]);
    io.err(`${report.close()} To continue from there: --since ${whereToContinue()}`);
    if (error instanceof Interrupted) return exitCode.ok;
    throw error;
  } finally {
    session.close();
  }
}

/** Starts after what exists. @param serverTime in whole seconds: what ended in this second may count as new after a gap */
async function startNow(history: History, serverTime: number): Promise<Start> {
  return { afterId: (await history.newestId()) ?? startAt(0).afterId, fromMs: serverTime, isNow: true };
}

const inEnglish = new Intl.ListFormat("en-GB");

function welcome({ kinds, forwardTo }: ListenOptions, url: string, tenantId: string): string {
  const hasBothEnds = kinds.has("delivered") && kinds.has("failed");
  const what = [
    ...(kinds.has("accepted") ? ["events"] : []),
    ...(kinds.has("replayed") ? ["replayed events"] : []),
    ...(hasBothEnds ? ["finished deliveries"] : []),
    ...(kinds.has("delivered") && !hasBothEnds ? ["acknowledged deliveries"] : []),
    ...(kinds.has("failed") && !hasBothEnds ? ["failed deliveries"] : []),
  ];
  return `Forwarding ${inEnglish.format(what)} of ${tenantId} at ${url} to ${forwardTo.href}. Press Ctrl+C to stop.`;
}
