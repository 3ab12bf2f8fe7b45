import { Cron } from "croner";
import { DomainError, invalid, unavailable } from "../domain/errors.ts";
import type { BackupFigures } from "../http/metrics.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { answerWithin } from "./answer-within.ts";
import {
  type BackupHistory,
  type BackupOutcome,
  errorOf,
  forget,
  makes,
  newestWholeAt,
  parseHistory,
  remember,
  toRemove,
} from "./history.ts";
import { asFolder, backupName, isEncryptedName, type Place, type StoredBackup, timeInName } from "./place.ts";

/**
 * Runs a command of this program in a separate process, which the signal ends, if need be by force. What it then leaves
 * unfinished is removed.
 * @param target a folder that it writes in, apart from the data directory
 */
export type RunOwn = (
  args: readonly string[],
  signal: AbortSignal,
  target?: string | null,
) => Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>;

export interface BackupsOptions {
  /** Null: the server makes no backups. */
  url: string | null;
  cron: string | null;
  keep: number | null;
  isEncrypted: boolean;
  /** Opens the place that `url` names. */
  openPlace(url: string): Place;
  run: RunOwn;
  /** The data directory. Backups are verified there, because its disk is the one with room for a copy. */
  folder: string;
  notes: { read(): string | null; write(text: string): void };
  clock: Clock;
  log: Log;
  /** Called for each failure, with the reason. */
  onFailed?(kind: BackupOutcome["kind"], error: string): void;
}

export interface Backups {
  readonly url: string | null;
  readonly cron: string | null;
  readonly keep: number | null;
  start(): void;
  /** Aborts whatever is under way. An unfinished backup leaves nothing behind; one that is being verified stays. */
  stop(): Promise<void>;
  /** Starts a backup and its verification. @throws DomainError when backups are not configured or one is already under way */
  begin(): void;
  /** Starts to verify a backup. @throws DomainError as `begin`, or when it is encrypted */
  beginVerification(name: string): void;
  /**
   * Notes a backup that a command has made in the server's place.
   * @param faults what is wrong with it; null: not checked
   * @throws DomainError when it is not there, or they cannot be listed
   */
  noteMade(name: string, made: { tookMs: number; faults: readonly string[] | null }): Promise<void>;
  /** Newest first. @throws DomainError when they cannot be listed */
  list(): Promise<StoredBackup[]>;
  underWay(): BackupOutcome["kind"] | null;
  nextAt(): number | null;
  history(): BackupHistory;
  /** For the metrics; null when no place is configured. */
  figures(): BackupFigures | null;
  whenIdle(): Promise<void>;
}

/** How a run ended. */
type Ended = Pick<BackupOutcome, "name" | "bytes" | "error"> & {
  /** Null: not checked. */
  readonly isWhole: boolean | null;
};
type End = (ended: Ended) => void;

/** Makes backups on schedule and on request, one at a time, each in a separate process. */
export function createBackups(options: BackupsOptions): Backups {
  const { url, cron, keep, isEncrypted, openPlace, run, folder, notes, clock, log, onFailed } = options;
  const schedule = cron === null ? null : new Cron(cron, { paused: true });
  const stopped = new AbortController();
  let history = parseHistory(notes.read());
  let working: { kind: BackupOutcome["kind"]; ended: Promise<void> } | null = null;
  let nextAt: number | null = null;
  let cancelTimer = () => {};
  let failures = 0;
  let listing: Promise<StoredBackup[]> | null = null;

  function plan(): void {
    nextAt = schedule?.nextRun(new Date(clock.now()))?.getTime() ?? null;
    if (nextAt === null || stopped.signal.aborted) return;
    cancelTimer = clock.after(nextAt - clock.now(), () => {
      // A timer may fire early: long delays are capped, and the clock may have been set.
      const isDue = nextAt !== null && clock.now() >= nextAt;
      if (isDue && url !== null) {
        if (working === null) work("backup", null, (end) => make(url, end));
        else log.write("warn", "backup.skipped", { underWay: working.kind });
      }
      plan();
    });
  }

  /**
   * Whatever becomes of it is noted.
   * @param name of the backup that it is about, if it exists already
   */
  function work(kind: BackupOutcome["kind"], name: string | null, task: (end: End) => Promise<void>): void {
    const at = clock.now();
    const startedAt = clock.monotonicMs();
    let latest: Ended = { name, bytes: null, error: null, isWhole: null };
    const end: End = ({ isWhole, ...ended }) => {
      latest = { isWhole, ...ended };
      note({ kind, at, tookMs: Math.round(clock.monotonicMs() - startedAt), ...ended }, isWhole);
    };
    const ended = task(end)
      .catch((error: unknown) =>
        end({ ...latest, isWhole: null, error: [latest.error ?? [], messageOf(error)].flat().join("; ") }),
      )
      .finally(() => {
        if (latest.error !== null) failures += 1;
        working = null;
      });
    working = { kind, ended };
  }

  /** Records and logs an outcome; an error is in the command's own words. */
  function note(outcome: BackupOutcome, isWhole: boolean | null): void {
    history = remember(history, outcome, isWhole);
    save();
    const { kind, name: backup, error, tookMs, bytes } = outcome;
    if (error === null)
      log.write("info", kind === "backup" ? "backup.made" : "backup.verified", { backup, bytes, tookMs });
    else {
      log.write("error", "backup.failed", { kind, backup, error });
      onFailed?.(kind, error);
    }
  }

  function save(): void {
    try {
      notes.write(JSON.stringify(history));
    } catch (error) {
      log.write("warn", "storage.warning", {
        message: `What is known of backups cannot be noted: ${messageOf(error)}`,
      });
    }
  }

  async function make(to: string, end: End): Promise<void> {
    const name = backupName(clock.now(), isEncrypted);
    history = makes(history, name);
    save();
    const args = ["backup", `${asFolder(to)}${name}`, "--verify", "--dir", folder, "--json"];
    const { out, err } = await run(args, stopped.signal, openPlace(to).folder);
    const made = parseAnswer(out);
    end({ name: made && name, bytes: made?.bytes ?? null, ...verdictOf(made, err) });
    if (made !== null && !stopped.signal.aborted) await prune(to, name);
  }

  async function verify(to: string, name: string, end: End): Promise<void> {
    const from = `${asFolder(to)}${name}`;
    const { out, err } = await run(["backup", "verify", from, "--dir", folder, "--json"], stopped.signal);
    end({ name, bytes: null, ...verdictOf(parseAnswer(out), err) });
  }

  function verdictOf(answer: Answer | null, err: string): Pick<Ended, "error" | "isWhole"> {
    if (answer === null || answer.verified === null) {
      return { error: whyNot(answer?.error ?? lastLine(err), stopped.signal.aborted), isWhole: null };
    }
    return { error: answer.verified ? null : answer.faults.join("; "), isWhole: answer.verified };
  }

  async function prune(to: string, latest: string): Promise<void> {
    try {
      const place = openPlace(to);
      const ask = <T>(what: () => Promise<T>) => answerWithin(to, what, { clock, signal: stopped.signal });
      const list = () => ask(() => place.list(clock.now()));
      for (const name of toRemove(await list(), keep, history, latest)) {
        await ask(() => place.remove(name));
        log.write("info", "backup.removed", { backup: name });
      }
      const listed = history;
      const left = await list();
      history = forget(history, listed, left);
    } catch (error) {
      throw new Error(`Older backups could not be removed: ${messageOf(error)}`, { cause: error });
    }
    save();
  }

  async function listNow(to: string): Promise<StoredBackup[]> {
    try {
      return await answerWithin(to, () => openPlace(to).list(clock.now()), { clock, signal: stopped.signal });
    } catch (error) {
      throw unavailable(messageOf(error), "backups_unavailable", 60);
    }
  }

  function ready(): string {
    if (url === null) throw notConfigured();
    if (stopped.signal.aborted || working !== null) throw atWork();
    return url;
  }

  return {
    url,
    cron,
    keep,
    start: plan,
    async stop() {
      cancelTimer();
      stopped.abort(new Error("the server was stopped"));
      await working?.ended;
    },
    begin() {
      const to = ready();
      work("backup", null, (end) => make(to, end));
    },
    beginVerification(name) {
      const to = ready();
      if (timeInName(name) === null) throw notFound();
      if (isEncryptedName(name)) throw encrypted(`${asFolder(to)}${name}`);
      work("verify", name, (end) => verify(to, name, end));
    },
    async noteMade(name, { tookMs, faults }) {
      if (url === null) throw notConfigured();
      // A list that is under way may have begun before this backup was there.
      const listed = history;
      const stored = await listNow(url);
      const made = stored.find((backup) => backup.name === name);
      if (made === undefined) throw notFound();
      const error = errorOf(faults);
      if (error !== null) failures += 1;
      history = forget(history, listed, stored);
      note({ kind: "backup", name, at: made.createdAt, tookMs, bytes: made.bytes, error }, faults && error === null);
    },
    async list() {
      if (url === null) return [];
      // A silent store keeps each connection for minutes, so whoever asks meanwhile waits for the same answer.
      listing ??= listNow(url).finally(() => {
        listing = null;
      });
      return listing;
    },
    underWay: () => working?.kind ?? null,
    nextAt: () => nextAt,
    history: () => history,
    figures() {
      if (url === null) return null;
      const { latest, latestBackup } = history;
      return {
        verifiedAt: newestWholeAt(history, clock.now()),
        hasFailed: (latest?.error ?? null) !== null,
        bytes: latestBackup?.bytes ?? null,
        tookMs: latestBackup?.tookMs ?? null,
        failures,
        isUnderWay: working !== null,
      };
    },
    async whenIdle() {
      await working?.ended;
    },
  };
}

interface Answer {
  readonly bytes?: number;
  /** Null: that could not be found out. */
  readonly verified: boolean | null;
  readonly faults: readonly string[];
  /** Why not. */
  readonly error?: string;
}

/** Null: the command printed an error instead. */
function parseAnswer(out: string): Answer | null {
  try {
    return JSON.parse(out) as Answer;
  } catch {
    return null;
  }
}

/** Worded for people, without the program's name; empty when it said nothing. */
const lastLine = (err: string): string =>
  err
    .trim()
    .split("\n")
    .at(-1)
    ?.replace(/^postrider: /, "") ?? "";

function whyNot(said: string, isStopped: boolean): string {
  if (!isStopped) return said || "The command ended without a word.";
  return said === "" ? "The server was stopped before it had ended." : `The server was stopped meanwhile: ${said}`;
}

const notConfigured = () =>
  invalid(
    "The server makes no backups. Try: set POSTRIDER_BACKUP_URL to a folder or s3://bucket/prefix.",
    "backup_not_configured",
  );
const atWork = () =>
  unavailable("A backup is being made or verified. Try: again when it has ended.", "backup_running", 30);
/** The identity is kept away from the server, so it has nothing to open the backup with. */
const encrypted = (backup: string) =>
  invalid(
    `The backup is encrypted, and the server cannot open it. Try: postrider backup verify ${backup} --identity FILE`,
    "backup_encrypted",
  );
const notFound = () =>
  new DomainError({ kind: "not_found", code: "backup_not_found", message: "There is no backup of that name." });
