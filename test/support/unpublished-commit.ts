import { join } from "node:path";
import { databaseFile } from "../../src/store/sqlite/open.ts";

/** SQLite keeps where the log ends twice, in headers of 48 bytes. */
const headersBytes = 96;

/**
 * As a kill during the sync of a commit leaves it: the log has the commit, and the index that all connections share has not.
 * It takes processes of its own, as closing the file here would drop the locks of every connection.
 */
export async function commitUnpublished(dataDir: string, commit: () => void | Promise<void>): Promise<void> {
  const index = join(dataDir, `${databaseFile}-shm`);
  const { stdout: before } = Bun.spawnSync(["head", "-c", String(headersBytes), index]);
  await commit();
  const { exitCode } = Bun.spawnSync(["dd", `of=${index}`, "conv=notrunc"], { stdin: before });
  if (exitCode !== 0) throw new Error(`The index ${index} could not be written`);
}
