import type { Database } from "bun:sqlite";
import type { Clock } from "../../lib/clock.ts";
import { freeBytesOf } from "../../lib/free-bytes.ts";

/**
 * What is put off must still be possible later. Ten thousand records of as many accounts, each with two pages of its own, would
 * take this much of the log.
 */
const spareBytes = 128 * 2 ** 20;

const lookEveryMs = 250;

/** Whether the disk, and the database if it has a limit, have that much room left. Checked at most four times a second. */
export function createSpareRoom(client: Database, folder: string, clock: Pick<Clock, "monotonicMs">): () => boolean {
  const pagesLeft = client.prepare<{ bytes: number }, []>(
    `select (max_page_count - page_count + freelist_count) * page_size as bytes
     from pragma_max_page_count, pragma_page_count, pragma_freelist_count, pragma_page_size`,
  );
  let lookedAt = Number.NEGATIVE_INFINITY;
  let hasRoom = false;

  const look = () => freeBytesOf(folder) >= spareBytes && (pagesLeft.get()?.bytes ?? 0) >= spareBytes;

  return () => {
    const now = clock.monotonicMs();
    if (now - lookedAt >= lookEveryMs) {
      lookedAt = now;
      try {
        hasRoom = look();
      } catch {
        // A disk that cannot even report how full it is has no room to rely on.
        hasRoom = false;
      }
    }
    return hasRoom;
  };
}
