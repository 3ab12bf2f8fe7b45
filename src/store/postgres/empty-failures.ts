import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";

/** Groups looked at per step. */
const groupsInOneLook = 200;

/**
 * A statement that adds to a group ends within seconds, so a group that has counted nothing for this long is not being added
 * to.
 */
const emptyForMs = 600_000;

/** The parts of an hour that add up to nothing: without them the sum of the hour is the same. */
const removeNothingText = `with part as materialized (
    select tenant_key, failure_key, hour, slot, waiting, failed from failure_count
    where (tenant_key, failure_key) in (select * from unnest($1::bigint[], $2::bigint[])) for update skip locked),
  nothing as (
    select tenant_key, failure_key, hour from part group by 1, 2, 3 having sum(waiting) = 0 and sum(failed) = 0)
  delete from failure_count c using part join nothing using (tenant_key, failure_key, hour)
  where c.tenant_key = part.tenant_key and c.failure_key = part.failure_key and c.hour = part.hour and c.slot = part.slot`;

const emptyText = `select g.tenant_key::float8 as "tenantKey", g.key::float8 as key from failure_group g
  join unnest($1::bigint[], $2::bigint[]) as given (of_tenant, of_group) on tenant_key = of_tenant and key = of_group
  where not exists (select 1 from failure_count c where c.tenant_key = g.tenant_key and c.failure_key = g.key)`;

const removeText = `delete from failure_group g using unnest($1::bigint[], $2::bigint[]) as given (of_tenant, of_group)
  where tenant_key = of_tenant and key = of_group
    and not exists (select 1 from failure_count c where c.tenant_key = g.tenant_key and c.failure_key = g.key)`;

interface GroupRef {
  readonly tenantKey: number;
  readonly key: number;
}

/** Removes what failure groups no longer count, a few groups per call, and the groups that count nothing. */
export function createFailureSweep(monotonicMs: () => number): (tx: Transaction) => Promise<void> {
  /** The last group looked at. */
  let last: GroupRef = { tenantKey: -1, key: -1 };
  /** When groups were first seen to be empty. */
  const empty = new Map<string, number>();

  const valuesOf = (groups: readonly GroupRef[]) => [
    arrayText(groups.map(({ tenantKey }) => tenantKey)),
    arrayText(groups.map(({ key }) => key)),
  ];

  /** The found groups that have been empty for long. */
  function longEmpty(groups: readonly GroupRef[], found: readonly GroupRef[]): GroupRef[] {
    const now = monotonicMs();
    const nameOf = ({ tenantKey, key }: GroupRef) => `${tenantKey} ${key}`;
    const isEmpty = new Set(found.map(nameOf));
    for (const name of groups.map(nameOf)) if (!isEmpty.has(name)) empty.delete(name);
    return found.filter((group) => {
      const name = nameOf(group);
      const since = empty.get(name) ?? now;
      empty.set(name, since);
      if (now - since < emptyForMs) return false;
      empty.delete(name);
      return true;
    });
  }

  return async ({ run }) => {
    const groups = await run<GroupRef>(
      `select tenant_key::float8 as "tenantKey", key::float8 as key from failure_group
       where (tenant_key, key) > ($1::bigint, $2::bigint) order by tenant_key, key limit $3::int`,
      [last.tenantKey, last.key, groupsInOneLook],
    );
    const beyond = groups.at(-1);
    last = groups.length === groupsInOneLook && beyond ? beyond : { tenantKey: -1, key: -1 };
    if (groups.length === 0) return;
    await run(removeNothingText, valuesOf(groups));
    const gone = longEmpty(groups, await run<GroupRef>(emptyText, valuesOf(groups)));
    if (gone.length > 0) await run(removeText, valuesOf(gone));
  };
}
