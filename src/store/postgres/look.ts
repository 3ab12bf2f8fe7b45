import { StartupError } from "../../domain/errors.ts";
import { aheadOf } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import { createVault } from "../../lib/vault.ts";
import type { StoreFigures, StoreLook } from "../look.ts";
import { oldestSnapshotSeconds } from "./figures.ts";
import { createMasterKeyCheck } from "./master-key.ts";
import { migrations } from "./migrations.ts";
import { readMoveMark, refusalOf } from "./move-mark.ts";
import { createPool, type Pool } from "./pool.ts";
import { readQueueDepth } from "./queue.ts";
import { checkServer, type StartCheckOptions } from "./start-check.ts";
import { addressOf } from "./unusable.ts";

/**
 * Looks at a database that servers may be using, with reads alone.
 * @returns null when no server of ours has used it yet
 * @throws StartupError when it cannot be reached or is not reliable, with what to do
 */
export async function lookAtServer({ url, clock, ...check }: StartCheckOptions): Promise<StoreLook | null> {
  await checkServer({ url, clock, ...check });
  let cause: unknown;
  const onFailure = (error: unknown) => {
    cause ??= error;
  };
  const pool = createPool({ url, clock, size: 1, onFailure });
  try {
    const askedAt = clock.now();
    const [row] = await pool.read<{ version: string; clockMs: number; isUsed: boolean }>(
      `select current_setting('server_version') as version,
              extract(epoch from clock_timestamp())::float8 * 1000 as "clockMs",
              to_regclass('migration') is not null as "isUsed"`,
    );
    if (!row?.isUsed) return null;
    const clockAheadMs = aheadOf(row.clockMs, askedAt, clock.now());
    const [counted] = await pool.read<{ found: number }>("select count(*)::int as found from migration");
    // Each migration is a transaction, and servers of an earlier release run on what it has made.
    const schema = { found: counted?.found ?? 0, known: migrations.length, isHalfway: false };
    const refusal = refusalOf(await readMoveMark(pool));
    return {
      backend: `PostgreSQL ${row.version} at ${addressOf(url)}`,
      schema,
      refusal,
      figures: schema.found === schema.known && refusal === null ? await figuresOf(pool) : null,
      server: { clockAheadMs, oldestSnapshotSeconds: await oldestSnapshotSeconds(pool) },
    };
  } catch (error) {
    throw new StartupError(
      `The database at ${addressOf(url)} did not answer as it should (${messageOf(cause ?? error)}). Try: check its log.`,
    );
  } finally {
    await pool.close();
  }
}

/** Whether a master key opens what is sealed in the database. @throws as a read of the pool does */
export async function opensWith(
  { url, clock }: Pick<StartCheckOptions, "url" | "clock">,
  masterKey: Uint8Array,
): Promise<boolean> {
  const pool = createPool({ url, clock, size: 1 });
  try {
    await createMasterKeyCheck(createVault(masterKey)).verify(pool);
    return true;
  } catch (error) {
    if (error instanceof StartupError) return false;
    throw error;
  } finally {
    await pool.close();
  }
}

async function figuresOf(pool: Pool): Promise<StoreFigures> {
  const [newest] = await pool.read<{ seq: number | null }>("select max(seq)::float8 as seq from event");
  const { pending, oldestDueAt } = await readQueueDepth(pool);
  const seq = newest?.seq ?? null;
  return { newestEventAt: seq === null ? null : ingestedAtMs(seq), waiting: pending, oldestDueAt };
}
