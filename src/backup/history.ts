import * as v from "valibot";
import { isAhead, type StoredBackup, timeInName } from "./place.ts";

/** How making or verifying a backup ended. */
const outcome = v.object({
  kind: v.picklist(["backup", "verify"]),
  /** Null: no backup came of it. */
  name: v.nullable(v.string()),
  /** When it started. */
  at: v.number(),
  tookMs: v.number(),
  bytes: v.nullable(v.number()),
  /** Null: it was made or verified successfully. */
  error: v.nullable(v.string()),
});

export type BackupOutcome = v.InferOutput<typeof outcome>;

/** @param faults what verifying found; null: not verified */
export const errorOf = (faults: readonly string[] | null): string | null =>
  faults === null || faults.length === 0 ? null : faults.join("; ");

const model = v.object({
  /** Of either kind. */
  latest: v.nullable(outcome),
  latestBackup: v.nullable(outcome),
  /** By name: whether the backup was whole when it was last checked. */
  verified: v.record(v.string(), v.boolean()),
  /** Names of those that this server makes, even if it does not hear of their end; others may keep theirs in the same place. */
  made: v.exactOptional(v.array(v.string())),
});

/** What a server remembers about its backups, in addition to the backups themselves; it survives a restart. */
export type BackupHistory = Required<v.InferOutput<typeof model>>;

const empty: BackupHistory = { latest: null, latestBackup: null, verified: {}, made: [] };

/** Starts over when the text cannot be read. Earlier releases did not note what they made, only what they verified. */
export function parseHistory(text: string | null): BackupHistory {
  try {
    const parsed = v.safeParse(model, JSON.parse(text ?? ""));
    return parsed.success ? { made: Object.keys(parsed.output.verified), ...parsed.output } : empty;
  } catch {
    return empty;
  }
}

/** Of the backups whose end the server has not heard of, which most likely failed: how many of the latest are remembered. */
const unheardLimit = 100;

/** Notes a backup before it is there: a server that is killed then still knows it for its own. */
export function makes(history: BackupHistory, name: string): BackupHistory {
  const isHeard = (made: string) => Object.hasOwn(history.verified, made);
  const unheard = new Set([...history.made.filter((made) => !isHeard(made)), name].slice(-unheardLimit));
  return { ...history, made: [...history.made, name].filter((made) => isHeard(made) || unheard.has(made)) };
}

/** @param isWhole null: not checked */
export function remember(history: BackupHistory, latest: BackupOutcome, isWhole: boolean | null): BackupHistory {
  const { name } = latest;
  const verified = name === null || isWhole === null ? history.verified : { ...history.verified, [name]: isWhole };
  const latestBackup = latest.kind === "backup" ? latest : history.latestBackup;
  return { ...history, latest, latestBackup, verified };
}

/** When the newest backup known to be whole was made; null without one. */
export function newestWholeAt({ verified }: BackupHistory, now: number): number | null {
  const times = Object.entries(verified).flatMap(([name, isWhole]) => {
    const createdAt = timeInName(name);
    return isWhole && createdAt !== null && !isAhead(createdAt, now) ? [createdAt] : [];
  });
  return times.length === 0 ? null : Math.max(...times);
}

/**
 * Drops what is known of backups that no longer exist.
 * @param listed the history as it was when `stored` was asked for: a backup whose end was not noted then may be missing there
 *   because it is being made, or has been made since
 */
export function forget(
  history: BackupHistory,
  listed: Pick<BackupHistory, "verified">,
  stored: readonly StoredBackup[],
): BackupHistory {
  const names = new Set(stored.map(({ name }) => name));
  const stays = (name: string) => names.has(name) || !Object.hasOwn(listed.verified, name);
  return {
    ...history,
    verified: Object.fromEntries(Object.entries(history.verified).filter(([name]) => stays(name))),
    made: history.made.filter(stays),
  };
}

/**
 * Which of the server's own backups make room for newer ones. The newest one known to be whole always stays; if there is none, all
 * of them stay: whatever state they are in, there is nothing better.
 *
 *   newest ──────────────▶ oldest     keep = 3, w = whole, x = not whole, ? = not checked
 *   w w w│w w              the last two go
 *   x x x│x w w            the last w and the fourth x go
 *   ? ? ?│? ?              none goes
 *
 * @param stored newest first
 * @param keep null: all
 * @param latest has just been made: it is the newest, whatever the clock has done since
 */
export function toRemove(
  stored: readonly StoredBackup[],
  keep: number | null,
  { verified, made }: Pick<BackupHistory, "verified" | "made">,
  latest: string,
): string[] {
  const own = stored.map(({ name }) => name).filter((name) => made.includes(name));
  const names = [latest, ...own.filter((name) => name !== latest)];
  const newestWhole = names.find((name) => verified[name] === true);
  if (keep === null || newestWhole === undefined) return [];
  return names.slice(keep).filter((name) => name !== newestWhole);
}
