import type { FailureKind } from "../domain/failure-groups.ts";
import { hourMs } from "../domain/failure-groups.ts";
import { firstSeqAt } from "../lib/id.ts";

/**
 * The key of a failure group within its account: 48 bits of the XXH64 of what defines the group. So any node can count a record
 * without looking up which groups exist. With a thousand groups per account, two share a key in one of five hundred million
 * accounts.
 */
export function failureKeyOf({ webhookKey, code, status, line }: FailureKind): number {
  const key = Number(Bun.hash.xxHash64(`${webhookKey ?? ""} ${code} ${status ?? ""} ${line}`) & lowest48Bits);
  return key < firstFreeKey ? key + firstFreeKey : key;
}

const lowest48Bits = 0xffff_ffff_ffffn;

/** Keys below this one are fixed. */
const firstFreeKey = 2;

/** How many event numbers fall into an hour: failures are counted by the hour of their event. */
export const seqsInHour = firstSeqAt(hourMs);

export const hourOf = (eventSeq: number): number => Math.floor(eventSeq / seqsInHour);
