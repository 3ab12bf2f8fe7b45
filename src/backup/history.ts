import * as v from "valibot";
import type { StoredBackup } from "./place.ts";

/** How making or verifying a backup ended. */
const outcome = v.object({
  kind: v.picklist(["backup", "verify"]),
  /** Null: it came to none. */
  name: v.nullable(v.string()),
  /** When it began. */
  at: v.number(),
  tookMs: v.number(),
  bytes: v.nullable(v.number()),
  /** Null: it was made, or verified. */
  error: v.nullable(v.string()),
});

export type BackupOutcome = v.InferOutput<typeof outcome>;

const model = v.object({
  /** Of either kind. */
  latest: v.nullable(outcome),
  latestBackup: v.nullable(outcome),
  /** By name, whether it was whole when it was last looked at. */
  verified: v.record(v.string(), v.boolean()),
  /** When the newest one was made of those that were. */
  verifiedAt: v.nullable(v.number()),
});

/** What a server remembers of its backups, beside them: after a restart too. */
export type BackupHistory = v.InferOutput<typeof model>;

const empty: BackupHistory = { latest: null, latestBackup: null, verified: {}, verifiedAt: null };

/** What cannot be read is begun anew. */
export function parseHistory(text: string | null): BackupHistory {
  try {
    const parsed = v.safeParse(model, JSON.parse(text ?? ""));
    return parsed.success ? parsed.output : empty;
  } catch {
    return empty;
  }
}

/**
 * @param createdAt of the backup
 * @param isWhole null: nobody has looked
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

/** Of those that are there; what is gone need not be remembered. */
export const forget = (history: BackupHistory, stored: readonly StoredBackup[]): BackupHistory => ({
  ...history,
  verified: Object.fromEntries(
    Object.entries(history.verified).filter(([name]) => stored.some((backup) => backup.name === name)),
  ),
});

/**
 * Which of the stored backups make room for newer ones. The newest that is known to be whole always stays, and without one
 * all of them do: whatever they are, there is nothing better.
 *
 *   newest ──────────────▶ oldest     keep = 3, w = whole, x = not, ? = nobody has looked
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
