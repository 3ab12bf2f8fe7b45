import type { FailureKind } from "../domain/failure-groups.ts";
import { hourMs } from "../domain/failure-groups.ts";
import { firstSeqAt } from "../lib/id.ts";

/**
 * The key of a group of failures in its account: 48 bits of the XXH64 of what it is. So a record is counted without a look at
 * what groups there are, on whichever node. Of a thousand groups two have the same one in five hundred million accounts.
 */
export function failureKeyOf({ webhookKey, code, status, line }: FailureKind): number {
  const key = Number(Bun.hash.xxHash64(`${webhookKey ?? ""} ${code} ${status ?? ""} ${line}`) & lowest48Bits);
  return key < firstFreeKey ? key + firstFreeKey : key;
}

const lowest48Bits = 0xffff_ffff_ffffn;

/** Below are the fixed ones. */
const firstFreeKey = 2;

/** So many numbers of events an hour has: failures are counted by the hour of their event. */
export const seqsInHour = firstSeqAt(hourMs);

export const hourOf = (eventSeq: number): number => Math.floor(eventSeq / seqsInHour);
