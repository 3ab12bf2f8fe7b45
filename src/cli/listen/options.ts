import { UsageError } from "../../domain/errors.ts";
import { encodeEventId, firstSeqAt, ingestedAtMs, parseEventId } from "../../lib/id.ts";
import { nearest } from "../../lib/nearest.ts";
import type { Flag } from "../arguments.ts";
import { parseMoment } from "../client/moment.ts";
import { clientFlags } from "../client/sign-in.ts";
import { jsonFlag } from "../command.ts";

/** The stage of an event's life at which it is forwarded. */
export type Kind = "accepted" | "replayed" | "delivered" | "failed";

/** Where forwarding starts: events after an id, and deliveries that end from a time on. */
export interface Start {
  /** Ids sort by time; the event with this id is not forwarded itself. */
  readonly afterId: string;
  /** In ms since the Unix epoch. */
  readonly fromMs: number;
  /** The past is ignored: nothing that ended before the stream opens is looked up. */
  readonly isNow: boolean;
}

export interface ListenOptions {
  readonly forwardTo: URL;
  readonly kinds: ReadonlySet<Kind>;
  /** Null: from now on. */
  readonly since: Start | null;
  readonly concurrency: number;
  readonly retries: number;
  readonly json: boolean;
}

const kindsOf: Readonly<Record<string, readonly Kind[]>> = {
  accepted: ["accepted"],
  replayed: ["replayed"],
  delivered: ["delivered"],
  failed: ["failed"],
  finished: ["delivered", "failed"],
};

const defaultConcurrency = 8;
const mostConcurrent = 100;
const mostRetries = 100;

export const listenFlags: readonly Flag[] = [
  {
    name: "--forward-to",
    value: "URL",
    isMeantBy: isAddress,
    doc: "Where to forward to, such as http://localhost:3000/hook or localhost:3000/hook. Required.",
  },
  {
    name: "--events",
    value: "LIST",
    choices: Object.keys(kindsOf),
    doc: "What to forward, comma-separated: `accepted` (every new event, the default), `replayed` (every event that a replay delivers again), `delivered`, `failed`, or `finished` for both outcomes of a delivery's last attempt. What fails without an attempt, because its webhook is missing, removed or disabled, is only in `postrider events list`.",
  },
  {
    name: "--since",
    value: "WHEN",
    doc: "Start in the past: `10m` ago, a time such as 2026-03-01T12:00Z, or after an event id.",
  },
  {
    name: "--concurrency",
    value: "N",
    doc: `Maximum concurrent requests to the address, 1 to ${mostConcurrent} (default ${defaultConcurrency}). They start in the order of the events; with 1, each waits for the one before.`,
  },
  {
    name: "--retry",
    value: "N",
    doc: `How many times to forward an event again that gets no response, 5xx, 429 or a redirect, 0 to ${mostRetries} (default 0). Pauses double from 1 to 30 seconds.`,
  },
  { ...jsonFlag, doc: "Print one JSON object per attempt and line, for programs." },
  ...clientFlags,
];

/** @throws UsageError */
export function readListenOptions(flags: ReadonlyMap<string, string>, now: number): ListenOptions {
  return {
    forwardTo: readForwardTo(flags.get("--forward-to")),
    kinds: readKinds(flags.get("--events") ?? "accepted"),
    since: readSince(flags.get("--since"), now),
    concurrency: readConcurrency(flags.get("--concurrency")),
    retries: readRetries(flags.get("--retry")),
    json: flags.has("--json"),
  };
}

const forwardExample = "--forward-to http://localhost:3000/hook";

/** Accepts addresses the way people write those of their own machine: without a scheme, or just the port. */
function readForwardTo(text: string | undefined): URL {
  if (text === undefined) throw new UsageError(`"postrider listen" needs --forward-to. Try: ${forwardExample}`);
  const url = parseForwardTo(text);
  if (url !== null && hasCredentials(url)) {
    // The message does not repeat them.
    throw new UsageError(`--forward-to must not have a user name or password. Try: ${forwardExample}`);
  }
  if (url !== null) return url;
  throw new UsageError(`--forward-to must be an http or https address, not "${text}". Try: ${forwardExample}`);
}

function parseForwardTo(text: string): URL | null {
  const withHost = /^:?\d{1,5}(?:\/|$)/.test(text) ? `localhost:${text.replace(/^:/, "")}` : text;
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(withHost) ? withHost : `http://${withHost}`);
  return url !== null && /^https?:$/.test(url.protocol) ? url : null;
}

const hasCredentials = ({ username, password }: URL) => username !== "" || password !== "";

/** Whether it is written as an address: almost any word would do for the name of a host. */
function isAddress(word: string): boolean {
  const url = /^https?:\/\/|^localhost(?:[:/]|$)|(?:^|:)\d{1,5}(?:\/|$)/i.test(word) ? parseForwardTo(word) : null;
  return url !== null && !hasCredentials(url);
}

function readKinds(text: string): ReadonlySet<Kind> {
  const words = text.split(",").map((word) => word.trim());
  const known = Object.keys(kindsOf);
  const unknown = words.find((word) => !known.includes(word));
  if (unknown === undefined) return new Set(words.flatMap((word) => kindsOf[word] ?? []));
  throw new UsageError(
    `"${unknown}" is not a kind of event to forward. Try: --events ${nearest(unknown, known) ?? known.join()}`,
  );
}

function readSince(text: string | undefined, now: number): Start | null {
  if (text === undefined) return null;
  const event = parseEventId(text);
  if (event) return { afterId: text, fromMs: ingestedAtMs(event.seq), isNow: false };
  const fromMs = parseMoment(text, "start", now);
  if (fromMs === null) {
    throw new UsageError(`--since must be a duration, a time or an event id, not "${text}". Try: --since 10m`);
  }
  if (fromMs > now + clockToleranceMs) {
    throw new UsageError(`--since must not be in the future, and "${text}" is. Try: --since 10m`);
  }
  return startAt(fromMs);
}

/** How far this machine's clock may be behind the server's. */
const clockToleranceMs = 60 * 60_000;

/** Everything from a time on: starts before the first id that this millisecond could have. */
export const startAt = (fromMs: number): Start => ({
  afterId: encodeEventId(firstSeqAt(Math.floor(fromMs)), new Uint8Array(8)),
  fromMs,
  isNow: false,
});

function readConcurrency(text = String(defaultConcurrency)): number {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= mostConcurrent) return value;
  throw new UsageError(`--concurrency must be 1 to ${mostConcurrent}. Try: --concurrency ${defaultConcurrency}`);
}

function readRetries(text = "0"): number {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= mostRetries) return value;
  throw new UsageError(`--retry must be 0 to ${mostRetries}, not "${text}". Try: --retry 3`);
}
