import { readValues } from "../config.ts";
import { openDataDir } from "../data-dir.ts";
import { StartupError } from "../domain/errors.ts";
import { systemClock as clock } from "../lib/clock.ts";
import { formatDuration } from "../lib/duration.ts";
import { compactStore } from "../store/open.ts";
import { formatBytes } from "./bytes.ts";
import { type Command, dataDirFlag, jsonFlag } from "./command.ts";
import { type EndSignal, exitCode, signalExitCode } from "./io.ts";
import { refuseUnused } from "./unused-folder.ts";

export const compactCommand: Command = {
  words: ["compact"],
  operands: [],
  flags: [dataDirFlag, jsonFlag],
  summary: "Return the database's unused space to the disk now (stop the server first)",
  details: `A server returns space by itself, in small steps. This writes a new copy of the database
next to the old one, which needs as much space as is in use, and then replaces the old one.
A database of an early version, which does not shrink by itself, does so from then on. If
interrupted, it leaves the database unchanged.`,
  async run({ flags }, io) {
    const { dataDir: folder, databaseUrl, masterKeyFile } = readValues(io.env, flags);
    if (databaseUrl !== null) throw new StartupError(onPostgres);
    refuseUnused(folder, masterKeyFile);
    const ended = new AbortController();
    let given: EndSignal = "SIGTERM";
    void io.nextSignal().then((signal) => {
      given = signal;
      ended.abort();
    });
    const startedAt = clock.monotonicMs();
    // Holding its lock proves that no server runs on it.
    const dataDir = openDataDir(folder, io.err, { masterKeyFile, isShared: false });
    try {
      const compacted = await compactStore({
        dataDir: dataDir.path,
        clock,
        signal: ended.signal,
        onProgress: ({ done, total }) => io.progress(`Compacting: ${formatBytes(done)} of about ${formatBytes(total)}`),
      });
      io.progress("");
      if (compacted === null) {
        io.err("Compacting was stopped, and the database is as it was.");
        return signalExitCode[given];
      }
      const tookMs = Math.round(clock.monotonicMs() - startedAt);
      const { bytesBefore, bytesAfter, shrinksNow } = compacted;
      if (flags.has(jsonFlag.name)) io.out(JSON.stringify({ ...compacted, tookMs }));
      else {
        io.out(
          `The database had ${formatBytes(bytesBefore)} and has ${formatBytes(bytesAfter)}; it took ${formatDuration(tookMs)}.`,
        );
        if (shrinksNow) io.out("From now on it shrinks by itself as events go.");
      }
      return exitCode.ok;
    } finally {
      io.progress("");
      dataDir.release();
    }
  },
};

const onPostgres =
  "The data is in PostgreSQL, whose autovacuum makes unused space available to later events. " +
  "Try: VACUUM FULL in psql, with every server stopped, to give it back to the system.";
