import { readFileSync, statSync } from "node:fs";
import { idempotencyLifetimeMs } from "../../domain/acceptance.ts";
import { StartupError, UsageError } from "../../domain/errors.ts";
import { isEventType, isReserved, maxEventTypeLength } from "../../domain/event-types.ts";
import { isOrderingKey, maxOrderingKeyLength } from "../../domain/order.ts";
import { parseDuration, unitMs } from "../../lib/duration.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Flag } from "../arguments.ts";
import { clientFlags } from "../client/sign-in.ts";
import { jsonFlag } from "../command.ts";
import type { Io } from "../io.ts";
import { type Bodies, createBodies } from "./bodies.ts";
import { faultOf } from "./fault.ts";
import { createLineSplitter, isBlank } from "./lines.ts";

export interface SendOptions {
  readonly what:
    | { readonly kind: "event"; readonly bytes: Uint8Array }
    | { readonly kind: "lines"; readonly input: AsyncIterable<Uint8Array> };
  /** What to try when the event is none; null: there is nothing to say but what is wrong with it. */
  remedy(): string | null;
  readonly bodies: Bodies;
  readonly json: boolean;
  readonly strict: boolean;
  /** How long a request is repeated, counted from its first failure. */
  readonly retryForMs: number;
  /** Batches under way at the same time. */
  readonly concurrency: number;
}

const defaultRetryFor = "2m";
/** Once the server has forgotten the idempotency key, a repeat would be accepted as another event. */
const longestRetryForMs = idempotencyLifetimeMs - unitMs.h;
const longestRetryFor = `${longestRetryForMs / unitMs.h}h`;
const defaultConcurrency = 4;
const mostConcurrent = 16;

export const sendFlags: readonly Flag[] = [
  { name: "--file", value: "FILE", doc: "Send the contents of the file as one event." },
  {
    name: "--type",
    value: "TYPE",
    doc: "Type of every event, such as order.paid (default: the payload's own event_type or type).",
  },
  {
    name: "--ordering-key",
    value: "KEY",
    doc: "Ordered webhooks get events with the same key one after the other.",
  },
  {
    ...jsonFlag,
    doc: "Print the server's response instead of the event's id; for lines, one JSON object each.",
  },
  {
    name: "--strict",
    doc: "Stop at the first line that is not an event or is refused. Otherwise, the remaining lines are sent.",
  },
  {
    name: "--retry-for",
    value: "TIME",
    doc: `How long to retry a request while the server is unavailable, at most ${longestRetryFor} (default ${defaultRetryFor}).`,
  },
  {
    name: "--concurrency",
    value: "N",
    doc: `Maximum concurrent batches of lines, 1 to ${mostConcurrent} (default ${defaultConcurrency}). With 1, events are accepted in the order of the lines.`,
  },
  ...clientFlags,
];

const example = `postrider send '{"hello": "world"}'`;

/** @throws UsageError; StartupError when the file cannot be read */
export function readSendOptions(
  operands: readonly string[],
  flags: ReadonlyMap<string, string>,
  io: Pick<Io, "input">,
): SendOptions {
  const file = flags.get("--file");
  const what = readWhat(operands, file, io);
  const bodies = readBodies(flags);
  return {
    what,
    remedy: () => (file === undefined ? remedyForTyped(operands[0]) : remedyForFile(file, what, bodies)),
    bodies,
    json: flags.has("--json"),
    strict: flags.has("--strict"),
    retryForMs: readRetryFor(flags.get("--retry-for") ?? defaultRetryFor),
    concurrency: readConcurrency(flags.get("--concurrency")),
  };
}

/** Judged by the server's own rules, before it is asked. */
function readBodies(flags: ReadonlyMap<string, string>): Bodies {
  const eventType = flags.get("--type") ?? null;
  const orderingKey = flags.get("--ordering-key") ?? null;
  if (eventType !== null && !isEventType(eventType)) throw notWithin("--type", maxEventTypeLength, "order.paid");
  if (eventType !== null && isReserved(eventType)) {
    throw new UsageError('--type must not begin with "postrider.". Try: --type order.paid');
  }
  if (orderingKey !== null && !isOrderingKey(orderingKey)) {
    throw notWithin("--ordering-key", maxOrderingKeyLength, "customer-42");
  }
  return createBodies({ eventType, orderingKey });
}

const notWithin = (flag: string, longest: number, sample: string) =>
  new UsageError(`${flag} must be 1 to ${longest} characters without control characters. Try: ${flag} ${sample}`);

function readWhat(operands: readonly string[], file: string | undefined, io: Pick<Io, "input">): SendOptions["what"] {
  const [text, ...more] = operands;
  if (more.length > 0) throw new UsageError(`An event must be a single argument; quote it. Try: ${example}`);
  if (text !== undefined && file !== undefined) {
    throw new UsageError(`--file and an event cannot be combined. Try: ${example}`);
  }
  if (file !== undefined) return { kind: "event", bytes: readEventFile(file) };
  if (text !== undefined && text !== "-") return { kind: "event", bytes: Buffer.from(text, "utf8") };
  const input = io.input();
  if (input !== null) return { kind: "lines", input };
  throw new UsageError(`Nothing to send. Try: ${example}, or lines: postrider send < events.ndjson`);
}

const remedyForTyped = (text = "") =>
  text !== "" && isFile(text) ? `postrider send --file ${shellWord(text)}` : example;

function isFile(text: string): boolean {
  try {
    return statSync(text).isFile();
  } catch {
    // Most texts could not even be the name of one.
    return false;
  }
}

/** A file of events, one a line, is named where an event was expected. Whatever else is wrong would be wrong with a line, too. */
function remedyForFile(file: string, what: SendOptions["what"], { longestPayload }: Bodies): string | null {
  if (what.kind !== "event") return null;
  const splitter = createLineSplitter(longestPayload);
  const [first, ...more] = [...splitter.push(what.bytes), ...splitter.end()].filter((line) => !isBlank(line));
  const isOfLines = first !== undefined && more.length > 0 && faultOf(first, longestPayload) === null;
  return isOfLines ? `postrider send < ${shellWord(file)}, if each of its lines is an event` : null;
}

function readEventFile(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch {
    throw new StartupError(`${path} cannot be read. Try: check the path and its permissions.`);
  }
}

function readRetryFor(text: string): number {
  const ms = parseDuration(text);
  if (ms !== null && ms <= longestRetryForMs) return ms;
  throw new UsageError(
    `--retry-for must be a duration of at most ${longestRetryFor}, not "${text}". Try: --retry-for ${defaultRetryFor}`,
  );
}

function readConcurrency(text = String(defaultConcurrency)): number {
  const value = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= mostConcurrent) return value;
  throw new UsageError(`--concurrency must be 1 to ${mostConcurrent}. Try: --concurrency ${defaultConcurrency}`);
}
