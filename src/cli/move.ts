import { join, resolve } from "node:path";
import { readValues } from "../config.ts";
import { masterKeyIsIn, openDataDir } from "../data-dir.ts";
import { StartupError, UsageError } from "../domain/errors.ts";
import { systemClock } from "../lib/clock.ts";
import { formatDuration } from "../lib/duration.ts";
import { movingSecrets } from "../secrets.ts";
import { type MoveProgress, type MoveSummary, moveToPostgres, moveToSqlite } from "../store/move/move.ts";
import type { Flag } from "./arguments.ts";
import { type Command, dataDirFlag, jsonFlag, noSnapshotFlag } from "./command.ts";
import { count } from "./count.ts";
import { type EndSignal, exitCode, signalExitCode } from "./io.ts";
import { describeUpgrade } from "./prepare.ts";
import { refuseUnused } from "./unused-folder.ts";

const toFlag: Flag = {
  name: "--to",
  value: "PLACE",
  doc: "A postgres:// URL, postgres for that of POSTRIDER_DATABASE_URL, or sqlite:DIR.",
};

const againFlag: Flag = {
  name: "--again",
  doc: "Move what is left of an earlier move whose target is lost, without what happened there.",
};

export const moveCommand: Command = {
  words: ["move"],
  operands: [],
  flags: [toFlag, againFlag, dataDirFlag, noSnapshotFlag, jsonFlag],
  summary: "Move all data to a PostgreSQL database, or back to a data directory",
  details: `Stop every server first. The target must be empty. The source is left unchanged, but no
server will start on it. Run the same command again to resume an interrupted move. At the
end the copy is compared with its source. To go back, POSTRIDER_DATABASE_URL names the
database that is moved from, and DIR has the master-key (or POSTRIDER_MASTER_KEY_FILE names
it).`,
  async run({ flags }, io) {
    const { dataDir: ownDir, databaseUrl, masterKeyFile, checkpoints } = readValues(io.env, flags);
    const to = placeFrom(flags.get("--to"), databaseUrl);
    const isBack = "dir" in to;
    const folder = isBack ? to.dir : ownDir;
    const url = isBack ? databaseUrl : to.url;
    if (url === null)
      throw new StartupError(
        "Moving back needs POSTRIDER_DATABASE_URL, which is not set. Try: set it to the database that is moved from",
      );
    if (!isBack) refuseUnused(folder, masterKeyFile);
    if (isBack && masterKeyFile === null && !masterKeyIsIn(folder)) {
      throw new StartupError(
        `There is no master-key in ${resolve(folder)}, and nothing else can decrypt what is moved. Try: mkdir -p ${folder} && ` +
          `cp ${join(ownDir, "master-key")} ${join(ownDir, "session-secret")} ${join(ownDir, "operator-token")} ${folder}`,
      );
    }
    const ended = new AbortController();
    let signal: EndSignal = "SIGTERM";
    void io.nextSignal().then((given) => {
      signal = given;
      ended.abort();
    });
    // Holding its lock proves that no server runs on it, and no other move.
    const dataDir = openDataDir(folder, isBack ? () => {} : io.err, { masterKeyFile, isShared: false });
    try {
      if (!isBack && dataDir.failsPending()) {
        throw new StartupError(
          `${dataDir.path} was restored with --pending fail, and no server has started on it since. ` +
            "Try: start one without POSTRIDER_DATABASE_URL, stop it, and move then.",
        );
      }
      // Only this folder knows that they wait: the servers of the database would not.
      if (!isBack && dataDir.held.length > 0) {
        throw new StartupError(
          `${dataDir.path} was restored with --pending hold, and still holds back ${dataDir.held.join(" and ")}. ` +
            "Try: start a server without POSTRIDER_DATABASE_URL, run postrider resume, stop it, and move then; or, to hold them " +
            "back after the move too, restore without --pending hold, move, and start the servers with " +
            `POSTRIDER_PAUSED=${dataDir.held.join(",")}.`,
        );
      }
      const { moving, staying } = movingSecrets(dataDir.secrets);
      const summary = await (isBack ? moveToSqlite : moveToPostgres)({
        dataDir: dataDir.path,
        url,
        masterKey: dataDir.secrets.masterKey,
        movingSecrets: moving,
        clock: systemClock,
        again: flags.has(againFlag.name),
        signal: ended.signal,
        checkpoints,
        takesSnapshot: !flags.has(noSnapshotFlag.name),
        onUpgrade: (progress) => io.progress(describeUpgrade(progress)),
        onSnapshot: ({ file }) => io.err(`The database as it was before its upgrade is in ${file}.`),
        onProgress: (progress) => io.progress(describeMove(progress)),
      });
      io.progress("");
      if (summary === null) {
        io.err("The move was stopped. Try: run the same command again to continue.");
        return signalExitCode[signal];
      }
      if (!isBack && staying.length > 0) {
        io.err(
          `Postrider did not generate ${staying.join(" and ")}, so other servers will not have the same. ` +
            "Try: copy it to the data directory of each before its first start.",
        );
      }
      io.out(flags.has("--json") ? JSON.stringify({ moved: true, ...summary }) : report(summary, isBack, dataDir.path));
      return exitCode.ok;
    } finally {
      io.progress("");
      dataDir.release();
    }
  },
};

function placeFrom(text: string | undefined, databaseUrl: string | null): { url: string } | { dir: string } {
  if (text === "postgres" && databaseUrl !== null) return { url: databaseUrl };
  if (text === "postgres") {
    throw new UsageError(
      "--to postgres needs POSTRIDER_DATABASE_URL, which is not set. Try: set it, or --to postgres://user:password@host/postrider",
    );
  }
  if (text !== undefined && /^postgres(ql)?:\/\//.test(text) && URL.canParse(text)) return { url: text };
  const dir = text?.startsWith("sqlite:") ? text.slice("sqlite:".length) : "";
  if (dir !== "") return { dir };
  throw new UsageError(
    "--to needs the URL of a PostgreSQL database, postgres for that of POSTRIDER_DATABASE_URL, or sqlite:DIR. " +
      "Try: postrider move --to postgres://user:password@host/postrider",
  );
}

function report({ rows, events, compared, miscounted }: MoveSummary, isBack: boolean, folder: string): string {
  const next = isBack
    ? `Start the server without POSTRIDER_DATABASE_URL and with POSTRIDER_DATA_DIR=${folder}.`
    : "Start the servers with POSTRIDER_DATABASE_URL set to it, all of them with this master-key.";
  const counted =
    miscounted.length === 0
      ? []
      : [`Counters of ${miscounted.join(", ")} were not what their records say, and were moved as they were.`];
  return [
    `${count(events)} events were moved, ${count(rows)} rows in all; counts and checksums agree, and so do ` +
      `${count(compared)} rows that were compared in full.`,
    ...counted,
    next,
  ].join("\n");
}

/** `Copying event: 1,200,000 of 3,000,000 rows, about 40 s left`. */
export function describeMove({ step, what, done, total, secondsLeft }: MoveProgress): string {
  const left = secondsLeft === null ? "" : `, about ${formatDuration(secondsLeft * 1000)} left`;
  if (step === "checking") return `Checking ${what}${left}`;
  if (step === "indexing") return `Making the index ${what}${left}`;
  return `Copying ${what}: ${count(done)} of ${count(total)} rows${left}`;
}
