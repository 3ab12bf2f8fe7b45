import type { MaintenanceVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";
import { overtake } from "./writes.ts";

/** To be called when webhooks of a locked tenant get records; what nodes keep says of some of them that they never had one. */
export async function noteUsed(tx: Transaction, held: HeldTenant, webhookKeys: ReadonlySet<number>): Promise<void> {
  const unused = held.webhooks.filter(({ key, used }) => webhookKeys.has(key) && used !== true).map(({ key }) => key);
  if (unused.length === 0) return;
  await tx.run("update webhook set used = true where tenant_key = $1::bigint and key = any($2::bigint[])", [
    held.tenant.key,
    arrayText(unused),
  ]);
  held.webhooks = held.webhooks.map((webhook) => (unused.includes(webhook.key) ? { ...webhook, used: true } : webhook));
  await overtake(tx, new Set([held.tenant.key]));
}

/** To be called when records of these webhooks, which are no longer registered, were deleted, perhaps the last to name one. */
export async function doubtWebhooks({ run }: Transaction, tenantKey: number, keys: ReadonlySet<number>): Promise<void> {
  if (keys.size === 0) return;
  await run("update webhook set used = null where tenant_key = $1::bigint and key = any($2::bigint[]) and used", [
    tenantKey,
    arrayText([...keys]),
  ]);
}

/** Events searched per step. */
const eventsInOneLook = 1_000;

/** By then, outcomes of attempts that were in flight when the webhook was removed are in the log. */
const graceMs = 60_000;

/** One account's webhooks while they are being judged. When another node takes over, it begins again. */
interface Walk {
  readonly tenantKey: number;
  /** Webhooks with higher keys are judged by the next walk. */
  readonly upToKey: number;
  /** The last event searched; null: all have been. */
  cursorSeq: number | null;
  readonly named: Set<number>;
}

const toJudge = "removed_at is not null and used is null and drained and removed_at <= $1::bigint";

const nextWalkText = `select tenant_key::float8 as "tenantKey",
    (select max(key) from webhook of_tenant where of_tenant.tenant_key = webhook.tenant_key)::float8 as "upToKey"
  from webhook where ${toJudge} order by tenant_key limit 1`;

/** The next events of a tenant, in the order of their numbers; waiting records are in one table, all others in the other. */
export const someEventsText = `select seq::float8 as seq from (
    (select distinct event_seq as seq from pending
      where tenant_key = $1::bigint and event_seq > $2::bigint and event_seq <= $3::bigint order by event_seq limit $4::int)
    union
    (select distinct event_seq as seq from delivery
      where tenant_key = $1::bigint and event_seq > $2::bigint and event_seq <= $3::bigint order by event_seq limit $4::int)
  ) of_both order by seq limit $4::int`;

/** Which webhooks the records and attempts of events refer to. */
export const namedText = `
  select distinct webhook_key::float8 as key from (
    select webhook_key from pending
      where tenant_key = $1::bigint and event_seq > $2::bigint and event_seq <= $3::bigint
    union all
    select webhook_key from delivery
      where tenant_key = $1::bigint and event_seq > $2::bigint and event_seq <= $3::bigint
    union all
    select webhook_key from attempt
      where tenant_key = $1::bigint and event_seq > $2::bigint and event_seq <= $3::bigint
        and event_seq = any($4::bigint[])
  ) named where webhook_key is not null`;

/** Decides when the rows of removed webhooks are deleted (`webhook-use.ts` of SQLite). */
export function webhookUseVerbs({
  pool,
  writes,
}: Pick<Connection, "pool" | "writes">): Pick<MaintenanceVerbs, "forgetWebhooks"> {
  let walk: Walk | null = null;

  async function lookThrough({ tenantKey, named }: Walk, afterSeq: number): Promise<number | null> {
    const events = await pool.read<{ seq: number }>(someEventsText, [
      tenantKey,
      afterSeq,
      Number.MAX_SAFE_INTEGER,
      eventsInOneLook,
    ]);
    const seqs = events.map(({ seq }) => seq);
    const last = seqs.at(-1);
    if (last === undefined) return null;
    for (const { key } of await pool.read<{ key: number }>(namedText, [tenantKey, afterSeq, last, arrayText(seqs)])) {
      named.add(key);
    }
    return seqs.length < eventsInOneLook ? null : last;
  }

  /** @returns false when none is left to judge */
  function judge({ tenantKey, upToKey, named }: Walk, removedBy: number, limit: number): Promise<boolean> {
    return writes.submit(async ({ run }) => {
      const webhooks = await run<{ key: number }>(
        `select key::float8 as key from webhook
          where ${toJudge} and tenant_key = $2::bigint and key <= $3::bigint order by key limit $4::int for update`,
        [removedBy, tenantKey, upToKey, limit],
      );
      const keys = webhooks.map(({ key }) => key);
      const ofThose = "tenant_key = $1::bigint and key = any($2::bigint[])";
      await run(`update webhook set used = true where ${ofThose}`, [
        tenantKey,
        arrayText(keys.filter((key) => named.has(key))),
      ]);
      await run(`delete from webhook where ${ofThose}`, [tenantKey, arrayText(keys.filter((key) => !named.has(key)))]);
      return keys.length === limit;
    });
  }

  return {
    async forgetWebhooks(now, limit) {
      if (!walk) {
        const [next] = await pool.read<{ tenantKey: number; upToKey: number }>(nextWalkText, [now - graceMs]);
        if (!next) return false;
        walk = { ...next, cursorSeq: 0, named: new Set() };
      }
      if (walk.cursorSeq !== null) walk.cursorSeq = await lookThrough(walk, walk.cursorSeq);
      else if (!(await judge(walk, now - graceMs, limit))) walk = null;
      return true;
    },
  };
}
