import * as v from "valibot";
import type { StoredBackup } from "./place.ts";

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

const model = v.object({
  /** Of either kind. */
  latest: v.nullable(outcome),
  latestBackup: v.nullable(outcome),
  /** By name: whether the backup was whole when it was last checked. */
  verified: v.record(v.string(), v.boolean()),
  /** When the newest backup known to be whole was made. */
  verifiedAt: v.nullable(v.number()),
});

/** What a server remembers about its backups, in addition to the backups themselves; it survives a restart. */
export type BackupHistory = v.InferOutput<typeof model>;

const empty: BackupHistory = { latest: null, latestBackup: null, verified: {}, verifiedAt: null };

/** Starts over when the text cannot be read. */
export function parseHistory(text: string | null): BackupHistory {
  try {
    const parsed = v.safeParse(model, JSON.parse(text ?? ""));
    return parsed.success ? parsed.output : empty;
  } catch {
    return empty;
  }
}

/**
 * @param createdAt when the backup was made
 * @param isWhole null: not checked
 */
export function remember(
  history: BackupHistory,
  latest: BackupOutcome,
  { createdAt, isWhole }: { createdAt: number | null; isWhole: boolean | null },
): BackupHistory {
  const { name } = latest;
  const verified = name === null || isWhole === null ? history.verified : { ...history.verified, [name]: isWhole };
  const verifiedAt =
    isWhole === true && createdAt !== null ? Math.max(createdAt, history.verifiedAt ?? 0) : history.verifiedAt;
  const latestBackup = latest.kind === "backup" ? latest : history.latestBackup;
  return { latest, latestBackup, verified, verifiedAt };
}

/** Drops what is known of backups that no longer exist. */
export const forget = (history: BackupHistory, stored: readonly StoredBackup[]): BackupHistory => ({
  ...history,
  verified: Object.fromEntries(
    Object.entries(history.verified).filter(([name]) => stored.some((backup) => backup.name === name)),
  ),
});

/**
 * Which of the stored backups make room for newer ones. The newest one known to be whole always stays; if there is none, all
 * of them stay: whatever state they are in, there is nothing better.
 *
 *   newest ──────────────▶ oldest     keep = 3, w = whole, x = not whole, ? = not checked
 *   w w w│w w              the last two go
 *   x x x│x w w            the last w and the fourth x go
 *   ? ? ?│? ?              none goes
 *
 * @param stored newest first
 * @param keep null: all
 */
export function toRemove(
  stored: readonly StoredBackup[],
  keep: number | null,
  verified: BackupHistory["verified"],
): string[] {
  const newestWhole = stored.find(({ name }) => verified[name] === true);
  if (keep === null || newestWhole === undefined) return [];
  return stored
    .slice(keep)
    .map(({ name }) => name)
    .filter((name) => name !== newestWhole.name);
}
