import type { DeliveryState } from "./delivery.ts";
import { type Failure, type FailureCode, noWebhook, serverRestored } from "./failure.ts";

/**
 * Failures of the same kind (rules, section 15): of one webhook, with one code and status, and with an answer that begins in
 * the same way. Each record with a failure is counted in one group, by its state and the hour of its event:
 *
 *   a failed attempt ──▶ in: waiting, or failed when its run has ended
 *   a replay ──▶ from failed to waiting          another failure ──▶ to the group of that one
 *   a success, or a record that makes room ──▶ out
 *
 * So a delivery that succeeds the first time is never counted.
 */
export interface FailureKind {
  /** Null: no webhook was registered. */
  readonly webhookKey: number | null;
  readonly code: FailureCode;
  readonly status: number | null;
  /** "" without an answer. */
  readonly line: string;
}

/** Groups that an account can have. Failures of any further kind count among the others. */
export const maxFailureGroups = 1_000;

/** Keys without a stored kind: the rest, of which only the number is known, and events that found no webhook. */
export const othersKey = 0;
export const noWebhookKey = 1;

/** The kind of a group with a fixed key. */
export const noWebhookKind: FailureKind = { webhookKey: null, code: noWebhook.code, status: null, line: "" };

/** The kind of a failed record of this webhook; null: it has not failed. @param answer what the attempt got */
export function kindOf(
  { errorCode, statusCode }: { readonly errorCode: FailureCode | null; readonly statusCode: number | null },
  webhookKey: number,
  answer: Uint8Array | null,
): FailureKind | null {
  if (errorCode === null) return null;
  return { webhookKey, code: errorCode, status: statusCode, line: statusCode === null ? "" : lineOf(answer) };
}

/** Like `kindOf`, for a record that ends without an attempt. */
export const kindWithoutAnswer = ({ code }: Failure, webhookKey: number): FailureKind => ({
  webhookKey,
  code,
  status: null,
  line: "",
});

/** What a record knows about its group, which may be gone; null: it has no failure. */
export const kindWithoutLine = (
  { errorCode, statusCode }: { readonly errorCode: FailureCode | null; readonly statusCode: number | null },
  webhookKey: number,
): FailureKind | null => errorCode && { webhookKey, code: errorCode, status: statusCode, line: "" };

/** How much of an answer is searched for its line. */
const readBytes = 2_048;
/** How much of that line is kept, in UTF-16 code units. */
const maxLineLength = 200;

const utf8 = new TextDecoder();

/** JSON and HTML: where their lines break is layout, and the first one may be no more than a bracket. */
const laidOut = /^[{[<]/;

/** What an answer says first, on one line, with `#` for what differs in each answer: numbers and ids. */
export function lineOf(answer: Uint8Array | null): string {
  if (answer === null) return "";
  const text = utf8.decode(answer.subarray(0, readBytes)).trim();
  const [firstLine = ""] = text.split(/[\r\n]/, 1);
  return (
    (laidOut.test(text) ? text : firstLine)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are nothing to show
      .replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, " ")
      .trim()
      // Bounds the work: only what may be kept is looked through.
      .slice(0, 4 * maxLineLength)
      .replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, "#")
      .replace(/\w+/g, blankWord)
      .replace(/#(?:[.,:]#)+/g, "#")
      .slice(0, maxLineLength)
      .toWellFormed()
  );
}

/** A word with this many letters and digits is an id. */
const idLength = 8;

/** A name that ends with a digit is the same in each answer: "v2", "utf8", "oauth2". */
const numberedName = /^[a-z]{1,6}\d$/i;

function blankWord(word: string): string {
  if (numberedName.test(word)) return word;
  return word.length >= idLength && /\d/.test(word) ? "#" : word.replace(/\d+/g, "#");
}

/** A record as it is counted. */
export interface CountedRecord {
  readonly state: DeliveryState;
  /** Its group's key; null: it has no failure, or one that predates groups. */
  readonly failureKey: number | null;
}

/** By how much a group's counts change for the events of one hour. */
export interface FailureMove {
  readonly failureKey: number;
  readonly waiting: number;
  readonly failed: number;
}

/** How the groups' counts change as a record becomes another. @param before null: it is new @param after null: it is removed */
export function movesOf(before: CountedRecord | null, after: CountedRecord | null): FailureMove[] {
  return [...countedAs(before, -1), ...countedAs(after, 1)];
}

function countedAs(record: CountedRecord | null, n: 1 | -1): FailureMove[] {
  if (!record || record.failureKey === null || record.state === "DELIVERED") return [];
  const { failureKey, state } = record;
  return [{ failureKey, waiting: state === "PENDING" ? n : 0, failed: state === "FAILED" ? n : 0 }];
}

/** What one webhook, or none, is failing with at present. */
export interface FailureSigns {
  readonly code: FailureCode;
  readonly waiting: number;
  readonly lastFailedAt: number;
  /** Types of its latest events, as `DeliveredTypes` names them. */
  readonly typeHashes: readonly (number | null)[];
}

/** When something was last delivered, by the hash of its event type (`typeHashOf`); null: events without a type. */
export type DeliveredTypes = ReadonlyMap<number | null, number>;

/**
 * Whether the failures of a group are ongoing: something waits with it, or nothing of its types has been delivered since.
 * A webhook that refuses one type and takes all others has not been fixed. What failed because the server was restored is
 * over: no webhook had a part in it.
 * @param delivered to the webhook as it is registered; null: it was removed
 */
export function goesOn(
  { code, waiting, lastFailedAt, typeHashes }: FailureSigns,
  delivered: DeliveredTypes | null,
): boolean {
  if (waiting > 0) return true;
  if (code === serverRestored.code) return false;
  return delivered !== null && !typeHashes.some((hash) => (delivered.get(hash) ?? 0) >= lastFailedAt);
}

/** Failures are counted by the hour of their event. */
export const hourMs = 3_600_000;
