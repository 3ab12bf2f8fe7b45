import type { Received } from "./event.ts";
import { createHistogram, type Histogram } from "./histogram.ts";

/**
 * The books of one run: what was sent, accepted and received. "Sent and not yet received" is the window; at the end
 * every accepted event must have been received.
 */
export interface Ledger {
  readonly run: number;
  sent: number;
  accepted: number;
  /** Answers other than 202, by status. */
  readonly refused: Map<number, number>;
  firstRefusal: string | undefined;
  /** Distinct events. */
  received: number;
  /** Deliveries of an event that had come before, and those of an earlier run. */
  duplicates: number;
  /** Deliveries to another tenant's webhook, of no event of the run, or with another payload. Must stay 0. */
  wrong: number;
  /** Due (closed loop: sent) → 202. */
  readonly ingestion: Histogram;
  /** Due (closed loop: sent) → received. */
  readonly endToEnd: Histogram;
  /** 202 → received; 0 for a delivery that was faster than the answer. */
  readonly delay: Histogram;
  inWindow(): number;
  noteAccepted(seq: number, latencyUs: number, atUs: number): void;
  noteRefused(status: number, answer: string): void;
  noteReceived(event: Received | null, tenantOfPath: number, atUs: number): void;
  /** Of the accepted events, those that never came. */
  lost(): number;
}

const initialCapacity = 1 << 20;

export function createLedger(run: number): Ledger {
  let seen = new Uint8Array(initialCapacity);
  /** When the first of an event's two signs came, its 202 or its delivery; the second makes the delay. */
  let firstSignUs = new Float64Array(initialCapacity);
  let refusedCount = 0;

  function makeRoomFor(seq: number) {
    if (seq < seen.length) return;
    const larger = new Uint8Array(seen.length * 2);
    larger.set(seen);
    seen = larger;
    const longer = new Float64Array(seen.length);
    longer.set(firstSignUs);
    firstSignUs = longer;
  }

  /** @param isDelivery of the two signs, the one that should come last */
  function noteSign(seq: number, atUs: number, isDelivery: boolean) {
    makeRoomFor(seq);
    const before = firstSignUs[seq] ?? 0;
    if (before === 0) firstSignUs[seq] = atUs;
    else ledger.delay.record(isDelivery ? atUs - before : 0);
  }

  function noteSeq(seq: number) {
    makeRoomFor(seq);
    if (seen[seq] === 1) {
      ledger.duplicates++;
      return false;
    }
    seen[seq] = 1;
    ledger.received++;
    return true;
  }

  const ledger: Ledger = {
    run,
    sent: 0,
    accepted: 0,
    refused: new Map(),
    firstRefusal: undefined,
    received: 0,
    duplicates: 0,
    wrong: 0,
    ingestion: createHistogram(),
    endToEnd: createHistogram(),
    delay: createHistogram(),
    inWindow: () => ledger.sent - refusedCount - ledger.received,
    noteAccepted(seq, latencyUs, atUs) {
      ledger.accepted++;
      ledger.ingestion.record(latencyUs);
      noteSign(seq, atUs, false);
    },
    noteRefused(status, answer) {
      refusedCount++;
      ledger.refused.set(status, (ledger.refused.get(status) ?? 0) + 1);
      ledger.firstRefusal ??= answer;
    },
    noteReceived(event, tenantOfPath, atUs) {
      if (event === null || event.tenant !== tenantOfPath || !event.exact) ledger.wrong++;
      else if (event.run < run) ledger.duplicates++;
      else if (event.run > run || event.seq >= ledger.sent) ledger.wrong++;
      else if (noteSeq(event.seq)) {
        ledger.endToEnd.record(atUs - event.dueUs);
        noteSign(event.seq, atUs, true);
      }
    },
    lost: () => Math.max(0, ledger.accepted - ledger.received),
  };
  return ledger;
}
