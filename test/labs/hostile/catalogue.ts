import tls from "node:tls";
import type { Authority } from "../../support/certificates.ts";
import { type Expected, noResponse, responded } from "../../support/expected-outcome.ts";
import { quickBehaviours, slowBehaviours } from "../../support/hostile-behaviours.ts";
import {
  answerOk,
  type Behaviour,
  type HostileReceiver,
  type HostileReceiverOptions,
  startDeafReceiver,
  startHostileReceiver,
} from "../../support/hostile-receiver.ts";
import { handshakeBehaviours, tlsBehaviours } from "../../support/hostile-tls-behaviours.ts";
import { canRenegotiate, renegotiations, startRenegotiatingReceiver } from "../../support/renegotiating-receiver.ts";

/**
 * Every hostile behaviour, as a receiver that a webhook can name, with what an attempt must come to.
 *
 * `quick` ones are over at once; `slow` ones take the whole time of an attempt, before the head of their answer or in its
 * body; `unread` ones are slow and never read, so that a large request meets a window of zero.
 */
export type Group = "quick" | "slow" | "unread";

export interface Receiver {
  readonly title: string;
  readonly group: Group;
  /** Scheme, host and port. */
  readonly origin: string;
  readonly expected: Expected;
}

interface Entry extends Omit<Receiver, "origin"> {
  scheme: "http" | "https";
  /** @default 127.0.0.1 */
  host?: string;
  start(): Promise<Pick<HostileReceiver, "port"> & Partial<HostileReceiver>>;
}

/** Between two bytes or lines of a receiver that trickles. */
const trickleMs = 1_000;
const trickling = new Set(slowBehaviours(trickleMs).map(([title]) => title));

/** Starts them all; what is not possible on this system is left out by name. */
export async function startCatalogue(authority: Authority) {
  const { entries, leftOut } = listEntries(authority);
  const receivers: Receiver[] = [];
  const longest: (() => [title: string, ms: number])[] = [];
  for (const { start, scheme, host = "127.0.0.1", ...rest } of entries) {
    const { port, longestMs } = await start();
    receivers.push({ ...rest, origin: `${scheme}://${host}:${port}` });
    if (longestMs !== undefined) longest.push(() => [rest.title, longestMs()]);
  }
  return { receivers, leftOut, longestConnections: () => Object.fromEntries(longest.map((of) => of())) };
}

function listEntries(authority: Authority): { entries: Entry[]; leftOut: string[] } {
  const certificate = authority.issue({ hosts: ["127.0.0.1", "localhost"] });
  const entries: Entry[] = [];
  const listening = (options: HostileReceiverOptions) => () => startHostileReceiver(options);

  for (const scheme of ["http", "https"] as const) {
    const secured = scheme === "https" ? { tls: certificate } : {};
    const add = (title: string, group: Group, expected: Expected, options: HostileReceiverOptions) =>
      entries.push({
        title: `${title} (${scheme})`,
        group,
        scheme,
        expected,
        start: listening({ ...options, ...secured }),
      });

    for (const [title, onRequest, expected, { sent, ...rest } = {}] of [
      ...slowBehaviours(trickleMs),
      ...quickBehaviours,
    ]) {
      const group = trickling.has(title) ? (sent === undefined ? "slow" : "unread") : "quick";
      add(title, group, expected, { onRequest, ...rest });
    }
    add("resets a kept connection as the next request comes", "quick", responded(200), {
      onRequest: onFirst((peer) => void peer.resetAndDestroy()),
    });
    add("ends a kept connection as the next request comes", "quick", responded(200), {
      onRequest: onFirst((peer) => void peer.end()),
    });
  }

  const tlsEntry = (title: string, expected: Expected, options: HostileReceiverOptions): Entry => ({
    title: `TLS ${title}`,
    group: expected.kind === "no-response" && expected.cause === "timeout" ? "slow" : "quick",
    scheme: "https",
    expected,
    start: listening(options),
  });
  for (const [title, options, expected] of tlsBehaviours(authority)) {
    entries.push(tlsEntry(title, expected, { tls: options }));
  }
  for (const [title, onConnection, expected] of handshakeBehaviours) {
    entries.push(tlsEntry(`handshake ${title}`, expected, { onConnection }));
  }
  const byName: tls.TlsOptions = { SNICallback: (_name, found) => found(null, tls.createSecureContext(certificate)) };
  entries.push({
    ...tlsEntry("needs a server name, and is told one, answers", responded(200), { tls: byName }),
    host: "localhost",
  });

  entries.push({
    title: "does not listen",
    group: "quick",
    scheme: "http",
    expected: noResponse("connection_refused"),
    async start() {
      const receiver = await startHostileReceiver({});
      receiver.close();
      return receiver;
    },
  });

  const leftOut: string[] = [];
  if (canRenegotiate) {
    for (const [title, how, expected] of renegotiations) {
      const start = () => startRenegotiatingReceiver(certificate, how);
      entries.push({ title: `TLS ${title}`, group: "quick", scheme: "https", expected, start });
    }
  } else leftOut.push("TLS renegotiation: as a server, only the TLS of Node.js can ask for it");
  if (process.platform === "linux") {
    for (const scheme of ["http", "https"] as const) {
      const title = `swallows the packets of the connection (${scheme})`;
      entries.push({ title, group: "slow", scheme, expected: noResponse("timeout"), start: startDeafReceiver });
    }
  } else leftOut.push("swallowed packets: elsewhere than on Linux a full queue of connections is answered");
  return { entries, leftOut };
}

/** Answers the first request of each connection, and does `then` for the next. */
const onFirst =
  (then: Behaviour): Behaviour =>
  (peer, nth) =>
    nth === 1 ? answerOk(peer, nth) : then(peer, nth);
