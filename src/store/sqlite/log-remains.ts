import type { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync } from "node:fs";
import { endOfLog, readLogFrames } from "./log-frames.ts";

/**
 * Whether Litestream has copied a commit that never completed, and has then restarted the log before this start could clear
 * the commit from it (`log-tail.ts`). It is still visible in what is left of the previous log:
 *
 *   log:  │ since the restart │ what is left of the previous one … batch 41 │ … batch 42 │      database: batch 41
 *
 * Each commit increments the batch number, so a number that the database has not reached is from a commit that never completed.
 */
export function hasCopiedInVain(client: Database, path: string): boolean {
  const lane = client
    .query<{ page: number }, []>("select rootpage as page from sqlite_schema where type = 'table' and name = 'lane'")
    .get();
  const log = `${path}-wal`;
  if (!lane || !existsSync(log)) return false;
  const file = openSync(log, "r");
  try {
    const frames = readLogFrames(file);
    const earlier = frames?.earlier(endOfLog(client));
    if (!frames || !earlier || (earlier.generation + 1) >>> 0 !== frames.generation) return false;
    let latest = 0;
    let uncommitted = 0;
    for (const frame of earlier.frames) {
      if (frame.page === lane.page) uncommitted = batchIn(frames.pageOf(frame));
      if (frame.endsCommit) latest = Math.max(latest, uncommitted);
    }
    return latest > (client.query<{ batch: number }, []>("select batch from lane").get()?.batch ?? latest);
  } finally {
    closeSync(file);
  }
}

const tableLeaf = 13;
/** How many bytes an integer takes, by its serial type in the record. */
const integerBytes = [0, 1, 2, 3, 4, 6, 8];

/**
 * Reads the batch from a page of `lane`, which has one row: null (the id, which is the row number), batch, last event, and the
 * last filed record, which is missing in commits of earlier programs.
 * @returns 0 for any other page
 */
function batchIn(page: Buffer): number {
  if (page[0] !== tableLeaf || page.readUInt16BE(3) !== 1) return 0;
  // The payload length and the row number before the record take one byte each, as does each part of its header: its length and
  // three or four types.
  const record = page.readUInt16BE(8) + 2;
  const [headerBytes = 0, , type = 0] = page.subarray(record, record + 4);
  if (headerBytes !== 4 && headerBytes !== 5) return 0;
  if (type === 9) return 1;
  const bytes = integerBytes[type] ?? 0;
  if (bytes === 0) return 0;
  return bytes === 8 ? Number(page.readBigInt64BE(record + headerBytes)) : page.readIntBE(record + headerBytes, bytes);
}
