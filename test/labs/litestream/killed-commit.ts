import type { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { databaseFile, openDatabase } from "../../../src/store/sqlite/open.ts";
import { commitUnpublished } from "../../support/unpublished-commit.ts";
import { createReplicator } from "./replicator.ts";
import { digestsOf } from "./rows.ts";

/**
 * A server is killed during the sync of a commit, which Litestream then reads although SQLite knows nothing of it. The next
 * server writes a commit over it that is as long and ends with the same page: Litestream would go on behind both.
 *
 * @returns what the restored database lacks
 */
export async function proveKilledCommit({ litestream, folder }: { litestream: string; folder: string }) {
  const dataDir = join(folder, "data");
  mkdirSync(dataDir, { mode: 0o700 });
  const path = join(dataDir, databaseFile);
  const open = () => openDatabase({ dataDir, checkpoints: "external" });
  const replicator = createReplicator(litestream, join(folder, "litestream"), path);
  try {
    const killed = open();
    killed.run("create table said (text text)");
    killed.run("create table filling (bytes blob)");
    await replicator.start();
    await replicator.looked();
    const copied = replicator.copied();
    await commitUnpublished(dataDir, () => say(killed, "never acknowledged"));
    killed.close(true);
    await copied;
    const next = open();
    say(next, "acknowledged");
    next.run("insert into filling values ('and more')");
    await replicator.looked();
    next.close(true);
    await replicator.stop();
    const restored = join(folder, databaseFile);
    await replicator.restore(restored);
    const after = digestsOf(restored);
    const differing = [...digestsOf(path)].filter(([table, digest]) => after.get(table) !== digest);
    return {
      faults: differing.map(([table, digest]) => `table ${table}: ${digest}, restored ${after.get(table)}`),
      snapshots: replicator.snapshots,
    };
  } finally {
    await replicator.stop();
  }
}

/** The last page of the first such commit is the same whatever was said. */
function say(client: Database, text: string): void {
  client.transaction(() => {
    client.run("insert into said values (?1)", [text]);
    client.run("insert into filling values (zeroblob(1000))");
  })();
}
