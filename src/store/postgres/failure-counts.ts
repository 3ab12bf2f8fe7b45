import { type FailureKind, type FailureMove, maxFailureGroups, othersKey } from "../../domain/failure-groups.ts";
import { failureKeyOf, hourOf, seqsInHour } from "../failure-key.ts";
import { laneSlots } from "./event-schema.ts";
import { rareLane } from "./held-tenants.ts";
import type { Node } from "./nodes.ts";
import { arrayText } from "./parameters.ts";
import type { Pool, Transaction } from "./pool.ts";

/**
 * What records fail with, in groups. Each lane counts in its own rows, as it does for usage, so that no lane waits for
 * another; a single row may be negative. The janitor removes what adds up to nothing (`empty-failures.ts`).
 */

/**
 * Counts what moved from one group to another.
 *
 * @param moved a relation of `tenant_key, failure_key, event_seq, waiting, failed, at`; `at` is when a failure came,
 *   otherwise 0
 * @param slot of the lane
 */
export const countFailuresText = (moved: string, slot: string): string => `
  insert into failure_count as f (tenant_key, failure_key, hour, slot, waiting, failed, last_failed_at)
  select tenant_key, failure_key, event_seq / ${seqsInHour}, ${slot}, sum(waiting), sum(failed), max(at)
  from (${moved}) moved group by 1, 2, 3
  on conflict (tenant_key, failure_key, hour, slot) do update set waiting = f.waiting + excluded.waiting,
    failed = f.failed + excluded.failed, last_failed_at = greatest(f.last_failed_at, excluded.last_failed_at)`;

/** A group that must exist for what is counted in it to be shown. */
export interface DescribedGroup {
  readonly tenantKey: number;
  readonly key: number;
  readonly kind: FailureKind;
}

/** Values for `unnest($n::bigint[], …::bigint[], …::bigint[], …::text[], …::int[], …::text[])`: the columns of a group. */
export const groupColumns = "tenant_key, key, webhook_key, code, status, line";
export const groupValues = (groups: readonly DescribedGroup[]): string[] => [
  arrayText(groups.map(({ tenantKey }) => tenantKey)),
  arrayText(groups.map(({ key }) => key)),
  arrayText(groups.map(({ kind }) => kind.webhookKey)),
  arrayText(groups.map(({ kind }) => kind.code)),
  arrayText(groups.map(({ kind }) => kind.status)),
  arrayText(groups.map(({ kind }) => kind.line)),
];

/** Locks the group, so that the janitor leaves it alone until what is counted in it becomes visible. */
const describeText = `insert into failure_group (${groupColumns})
  values ($1::bigint, $2::bigint, $3::bigint, $4::text, $5::int, $6::text)
  on conflict (tenant_key, key) do update set line = excluded.line`;

export async function describeGroup({ run }: Transaction, { tenantKey, key, kind }: DescribedGroup): Promise<void> {
  if (key === othersKey) return;
  await run(describeText, [tenantKey, key, kind.webhookKey, kind.code, kind.status, kind.line]);
}

const addText = `insert into failure_count as f (tenant_key, failure_key, hour, slot, waiting, failed, last_failed_at)
  select $1::bigint, failure_key, hour, $2::smallint, waiting, failed, failed_at
  from unnest($3::bigint[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[])
    as given (failure_key, hour, waiting, failed, failed_at)
  on conflict (tenant_key, failure_key, hour, slot) do update set waiting = f.waiting + excluded.waiting,
    failed = f.failed + excluded.failed, last_failed_at = greatest(f.last_failed_at, excluded.last_failed_at)`;

/** Those of these groups of a tenant that still exist; locked. */
export async function groupsThere(
  { run }: Transaction,
  tenantKey: number,
  keys: readonly number[],
): Promise<Set<number>> {
  const rows = await run<{ key: number }>(
    `select key::float8 as key from failure_group where tenant_key = $1::bigint and key = any($2::bigint[]) for key share`,
    [tenantKey, arrayText(keys)],
  );
  return new Set([othersKey, ...rows.map(({ key }) => key)]);
}

/** What rare verbs count for a tenant that they have locked. */
export class FailureTally {
  private readonly sums = new Map<string, FailureMove & { readonly hour: number; readonly failedAt: number }>();

  /** @param failedAt when the failure came that a record now has; 0: it has none, or waits again with the one it had */
  add(eventSeq: number, moves: readonly FailureMove[], failedAt = 0): void {
    const hour = hourOf(eventSeq);
    for (const { failureKey, waiting, failed } of moves) {
      const name = `${failureKey} ${hour}`;
      const sum = this.sums.get(name);
      this.sums.set(name, {
        ...{ failureKey, hour },
        waiting: waiting + (sum?.waiting ?? 0),
        failed: failed + (sum?.failed ?? 0),
        failedAt: Math.max(waiting + failed > 0 ? failedAt : 0, sum?.failedAt ?? 0),
      });
    }
  }

  async write({ run }: Transaction, { slot }: Pick<Node, "slot">, tenantKey: number): Promise<void> {
    const sums = [...this.sums.values()];
    if (sums.length === 0) return;
    await run(addText, [
      ...[tenantKey, slot * laneSlots + rareLane],
      arrayText(sums.map(({ failureKey }) => failureKey)),
      arrayText(sums.map(({ hour }) => hour)),
      arrayText(sums.map(({ waiting }) => waiting)),
      arrayText(sums.map(({ failed }) => failed)),
      arrayText(sums.map(({ failedAt }) => failedAt)),
    ]);
  }
}

/** Which groups accounts have, as far as a node needs to know: it matters only when there is no room for another one. */
export interface KnownGroups {
  /** Has to be called before `keyOf`. */
  learn(tenantKeys: readonly number[]): Promise<void>;
  keyOf(tenantKey: number, kind: FailureKind): number;
}

/** The most accounts whose groups are known. */
const knownLimit = 1_000;
/** Other nodes add groups, and the janitor removes them. */
const knownForMs = 60_000;

export function createKnownGroups(pool: Pool, monotonicMs: () => number): KnownGroups {
  const known = new Map<number, { readonly keys: Set<number>; readonly since: number }>();

  return {
    async learn(tenantKeys) {
      const now = monotonicMs();
      const unknown = [...new Set(tenantKeys)].filter((key) => {
        const since = known.get(key)?.since;
        return since === undefined || now - since > knownForMs;
      });
      if (unknown.length === 0) return;
      const rows = await pool.read<{ tenantKey: number; key: number }>(
        `select tenant_key::float8 as "tenantKey", key::float8 as key from failure_group
         where tenant_key = any($1::bigint[])`,
        [arrayText(unknown)],
      );
      if (known.size + unknown.length > knownLimit) known.clear();
      for (const tenantKey of unknown) known.set(tenantKey, { keys: new Set(), since: now });
      for (const { tenantKey, key } of rows) known.get(tenantKey)?.keys.add(key);
    },

    keyOf(tenantKey, kind) {
      const key = failureKeyOf(kind);
      const keys = known.get(tenantKey)?.keys;
      if (!keys || keys.has(key)) return key;
      if (keys.size >= maxFailureGroups) return othersKey;
      keys.add(key);
      return key;
    },
  };
}
