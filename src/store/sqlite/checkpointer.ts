import type { Database } from "bun:sqlite";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { waitForLocks } from "./pragma.ts";
import type { Reader } from "./reader.ts";

/**
 * Keeps the log short without stopping the event loop for it. SQLite by itself copies the log back inside the commit that fills
 * it, on this thread: with 100 jobs a batch, one commit in a hundred then took 13 ms or more, and one in a thousand 21. This
 * way it is 9 and 12, with 6 % more jobs a second and a log of 15 MiB instead of 5.
 *
 *   after a batch: log ≥ 4,000 pages ─▶ the Worker copies them ─▶ this thread copies the few that were added meanwhile
 *                                                                  └─▶ the next batch begins at the start of the log
 *
 * The last step is needed because the log is restarted only if all of it has been copied by the time a writer begins.
 */
export interface Checkpointer {
  /** To be called between batches. */
  look(): void;
  /**
   * Empties the log: on a server at rest it would have for days what was erased from the file. Waits for nobody.
   * @returns false while a reader holds it, or a writer adds much
   */
  empty(): Promise<boolean>;
}

/**
 * 16 MiB. A page that many commits write is copied once per round: with the 4 MiB that SQLite itself uses, the Worker needed
 * twice the processor time at full load, and synced four times as often alongside the commits.
 */
const dueAtPages = 4_000;

/** At most this many pages are copied by this thread; more would hold it up for longer than a commit does. */
const mostCopiedHere = 1_000;

/**
 * A look costs as much as storing two events, so the next one is due when the log may have become long: 100 pages a millisecond
 * are 400 MB a second, several times what full load or batches of long payloads write.
 */
const writtenPerMs = 100;
const shortestPauseMs = 10;

/** This few pages are copied faster than another round takes. */
const fewPages = 100;
const rounds = 4;

/**
 * 64 MiB: a log that has become this long is copied by this thread, so that it is restarted, unless more than this is left to
 * copy. More is left after a reader has held the log, as a backup does while it reads. After one minute of that at 2,400 events
 * a second it was 4.9 GB, and copying it in one go stopped this thread for 1.6 s.
 */
const overdueAtPages = 16_384;

export function createCheckpointer(
  client: Database,
  reader: Pick<Reader, "checkpoint">,
  onFailure?: (failure: { operation: string; error: unknown }) => void,
  // Real time by default: how fast a log grows depends on the machine.
  clock: Pick<Clock, "monotonicMs"> = systemClock,
): Checkpointer {
  // "noop" only reports how long the log is, and how much of it has been copied.
  const measure = client.prepare<{ log: number; checkpointed: number }, []>("pragma wal_checkpoint(noop)");
  const copy = client.prepare<{ log: number; checkpointed: number }, []>("pragma wal_checkpoint(passive)");
  const emptying = client.prepare<{ log: number; checkpointed: number }, []>("pragma wal_checkpoint(truncate)");
  let isUnderWay = false;
  let lookAt = Number.NEGATIVE_INFINITY;
  let overdueAt = overdueAtPages;
  /** The Worker copies, yet the backlog does not shrink: only this thread can make the writers wait. */
  let isOutrun = false;

  /** The disk may be full or broken: the log grows then, and writers will run into that. */
  function tryTo(read: () => { log: number; checkpointed: number } | null) {
    try {
      const { log, checkpointed } = read() ?? { log: 0, checkpointed: 0 };
      return { log, checkpointed, left: log - checkpointed };
    } catch (error) {
      onFailure?.({ operation: "checkpoint", error });
      return { log: 0, checkpointed: 0, left: 0 };
    }
  }

  async function copyElsewhere(): Promise<void> {
    isUnderWay = true;
    try {
      // While the Worker copies, the log grows; each round leaves it less to do.
      for (let round = 0; round < rounds; round++) {
        const before = tryTo(() => measure.get());
        await reader.checkpoint();
        const { checkpointed, left } = tryTo(() => measure.get());
        isOutrun = checkpointed > before.checkpointed && left >= before.left;
        if (left <= fewPages) break;
      }
      if (!client.inTransaction && tryTo(() => measure.get()).left <= mostCopiedHere) tryTo(() => copy.get());
    } catch {
      // It could not, and may not the next time either.
      isOutrun = true;
    } finally {
      isUnderWay = false;
    }
  }

  function truncate() {
    // This thread would wait for readers otherwise, and requests with it.
    client.run("pragma busy_timeout = 0");
    try {
      return emptying.get();
    } finally {
      waitForLocks(client);
    }
  }

  return {
    async empty() {
      if (tryTo(() => measure.get()).left > mostCopiedHere && !isUnderWay) await copyElsewhere();
      const { log, left } = tryTo(() => measure.get());
      if (log === 0) return true;
      if (left > mostCopiedHere || client.inTransaction) return false;
      tryTo(truncate);
      return tryTo(() => measure.get()).log === 0;
    },
    look() {
      const now = clock.monotonicMs();
      if (now < lookAt) return;
      const { log, left } = tryTo(() => measure.get());
      lookAt = now + Math.max(Math.min(dueAtPages - left, overdueAt - log) / writtenPerMs, shortestPauseMs);
      if (log < overdueAtPages) overdueAt = overdueAtPages;
      if (log >= overdueAt && (left <= overdueAtPages || isOutrun)) {
        tryTo(() => copy.get());
        isOutrun = false;
        // While an outside reader holds the log, copying again right away would be in vain.
        overdueAt = log + dueAtPages;
      } else if (left >= dueAtPages && !isUnderWay) {
        void copyElsewhere();
      }
    },
  };
}
