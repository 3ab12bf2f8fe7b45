import type { DeliveryState } from "./delivery.ts";
import { type Failure, type FailureCode, noWebhook, serverRestored } from "./failure.ts";

/**
 * Failures that are alike (rules, section 15): of one webhook, with one code and status, and with an answer that begins in
 * the same way. Each record with a failure is counted in one group, by its state and the hour of its event:
 *
 *   a failed attempt ──▶ in: waiting, or failed when its run has ended
 *   a replay ──▶ from failed to waiting          another failure ──▶ to the group of that one
 *   a success, or a record that makes room ──▶ out
 *
 * So a delivery that succeeds at once counts nothing.
 */
export interface FailureKind {
  /** Null: no webhook was registered. */
  readonly webhookKey: number | null;
  readonly code: FailureCode;
  readonly status: number | null;
  /** "" without an answer. */
  readonly line: string;
}

/** Groups that an account can have. What fails in yet another way is among the others. */
export const maxFailureGroups = 1_000;

/** Keys that no kind is stored for: the rest, of which only the number is known, and what found no webhook. */
export const othersKey = 0;
export const noWebhookKey = 1;

/** What a group with a fixed key is. */
export const noWebhookKind: FailureKind = { webhookKey: null, code: noWebhook.code, status: null, line: "" };

/** What a record of this webhook has failed with; null: it has not. @param answer what the attempt got */
export function kindOf(
  { errorCode, statusCode }: { readonly errorCode: FailureCode | null; readonly statusCode: number | null },
  webhookKey: number,
  answer: Uint8Array | null,
): FailureKind | null {
  if (errorCode === null) return null;
  return { webhookKey, code: errorCode, status: statusCode, line: statusCode === null ? "" : lineOf(answer) };
}

/** As `kindOf`, of a record that ends without an attempt. */
export const kindWithoutAnswer = ({ code }: Failure, webhookKey: number): FailureKind => ({
  webhookKey,
  code,
  status: null,
  line: "",
});

/** What a record knows of its group, which may have gone; null: it has no failure. */
export const kindWithoutLine = (
  { errorCode, statusCode }: { readonly errorCode: FailureCode | null; readonly statusCode: number | null },
  webhookKey: number,
): FailureKind | null => errorCode && { webhookKey, code: errorCode, status: statusCode, line: "" };

/** Of an answer, to find its first line in. */
const readBytes = 2_048;
/** Of that line, in UTF-16 code units. */
const maxLineLength = 200;

const utf8 = new TextDecoder();

/** The first line of an answer that says anything, with what is another in each answer as `#`: numbers and ids. */
export function lineOf(answer: Uint8Array | null): string {
  if (answer === null || answer.length === 0) return "";
  const line = utf8
    .decode(answer.subarray(0, readBytes))
    .split(/[\r\n]+/)
    .find((some) => some.trim() !== "");
  if (line === undefined) return "";
  return (
    line
      // Only what is kept can be looked through without an end.
      .slice(0, 4 * maxLineLength)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are nothing to show
      .replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, " ")
      .trim()
      .replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, "#")
      .replace(/\w+/g, blankWord)
      .replace(/#(?:[.,:]#)+/g, "#")
      .slice(0, maxLineLength)
      .toWellFormed()
  );
}

/** A word of so many letters and digits is an id. */
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
  /** Of its group; null: it has no failure, or one from before there were groups. */
  readonly failureKey: number | null;
}

/** What a group counts more, or less, of the events of one hour. */
export interface FailureMove {
  readonly failureKey: number;
  readonly waiting: number;
  readonly failed: number;
}

/** What the groups count as a record becomes another. @param before null: it is new @param after null: it is removed */
export function movesOf(before: CountedRecord | null, after: CountedRecord | null): FailureMove[] {
  return [...countedAs(before, -1), ...countedAs(after, 1)];
}

function countedAs(record: CountedRecord | null, n: 1 | -1): FailureMove[] {
  if (!record || record.failureKey === null || record.state === "DELIVERED") return [];
  const { failureKey, state } = record;
  return [{ failureKey, waiting: state === "PENDING" ? n : 0, failed: state === "FAILED" ? n : 0 }];
}

/** What one webhook, or none, fails with at this time. */
export interface FailureSigns {
  readonly code: FailureCode;
  readonly waiting: number;
  readonly lastFailedAt: number;
  /** Types of its latest events, as `DeliveredTypes` names them. */
  readonly typeHashes: readonly (number | null)[];
}

/** When something was last delivered, of each type of event by its hash (`typeHashOf`); null: of those without one. */
export type DeliveredTypes = ReadonlyMap<number | null, number>;

/**
 * Whether failures of a group go on: something waits with it, or nothing of its types has been delivered since. A webhook that
 * refuses one type and takes all others has not been mended. What failed as the server was restored is over: no webhook had a
 * part in it.
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

export const hourMs = 3_600_000;
