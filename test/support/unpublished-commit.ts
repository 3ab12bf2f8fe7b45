import { join } from "node:path";
import { databaseFile } from "../../src/store/sqlite/open.ts";

/** SQLite stores the end of the log twice, in headers of 48 bytes. */
const headersBytes = 96;

/**
 * The state that a kill during a commit's sync leaves behind: the log has the commit, but the index shared by all
 * connections does not. It needs separate processes, because closing the file here would drop the locks of every
 * connection.
 */
export async function commitUnpublished(dataDir: string, commit: () => void | Promise<void>): Promise<void> {
  const index = join(dataDir, `${databaseFile}-shm`);
  const { stdout: before } = Bun.spawnSync(["head", "-c", String(headersBytes), index]);
  await commit();
  const { exitCode } = Bun.spawnSync(["dd", `of=${index}`, "conv=notrunc"], { stdin: before });
  if (exitCode !== 0) throw new Error(`The index ${index} could not be written`);
}
