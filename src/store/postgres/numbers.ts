import { firstSeqAt, ingestedAtMs } from "../../lib/id.ts";
import { nodeSlots } from "./event-schema.ts";

/** How many numbers one node can give in a millisecond. */
const perSlot = firstSeqAt(1) / nodeSlots;

/**
 * The next number of a node, for an event or a key: `time in ms * 2048 + slot * 64 + n`, always above the last one that it
 * gave. So no node waits for another, and the numbers of one node grow. As in `nextEventSeq`, they run ahead of the clock
 * when it steps back, or when more than 64 are needed in a millisecond.
 */
export function nextNumber(last: number, nowMs: number, slot: number): number {
  const ms = Math.max(Math.floor(nowMs), ingestedAtMs(last));
  const first = firstSeqAt(ms) + slot * perSlot;
  if (last < first) return first;
  return last + 1 < first + perSlot ? last + 1 : first + firstSeqAt(1);
}

/** Gives this process its numbers: for events, and for the rows that belong to them. */
export interface Numbers {
  nextEventSeq(): number;
  nextKey(): number;
  /** How far an event accepted now would be ahead of the clock, as after the clock was set back; otherwise 0. */
  aheadMs(): number;
}

export function createNumbers(from: {
  /** Every number must be above this one. */
  lastSeq: number;
  now(): number;
  slot(): number;
}): Numbers {
  let lastSeq = from.lastSeq;
  let lastKey = from.lastSeq;
  return {
    nextEventSeq() {
      lastSeq = nextNumber(lastSeq, from.now(), from.slot());
      return lastSeq;
    },
    aheadMs: () => Math.max(0, ingestedAtMs(lastSeq) - Math.floor(from.now())),
    nextKey() {
      lastKey = nextNumber(lastKey, from.now(), from.slot());
      return lastKey;
    },
  };
}
