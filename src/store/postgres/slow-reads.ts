import { requestAbandoned } from "../../domain/errors.ts";
import { createFairQueue, QueueFull } from "../../lib/fair-queue.ts";
import { storageUnavailable } from "./faults.ts";

/**
 * Reads of an account that take as long as its history is: filtered lists and searches, what a replay would select, charts of
 * months. The pool has other things to do, so only some of its connections are theirs, and accounts take turns: of three
 * hundred previews at once, half a million events each, everybody's lists waited 16 s.
 */
export interface SlowReads {
  /** @throws DomainError `unavailable` when too many wait; `request_abandoned` */
  run<T>(tenantKey: number, read: () => Promise<T>, isAbandoned?: () => boolean): Promise<T>;
}

const readsAtATime = 2;
/**
 * Beyond this, those who asked for most are refused. Among ten million events a page takes a second, so that the last one is
 * answered after 15 s: after 30 s of silence its connection is cut.
 */
const mostWaiting = 30;

export function createSlowReads(): SlowReads {
  const turns = createFairQueue({ slots: readsAtATime, maxWaiting: mostWaiting });

  return {
    async run(tenantKey, read, isAbandoned) {
      try {
        return await turns.run([String(tenantKey)], async () => {
          if (isAbandoned?.()) throw requestAbandoned();
          return read();
        });
      } catch (error) {
        if (error instanceof QueueFull) throw storageUnavailable("passing");
        throw error;
      }
    },
  };
}
