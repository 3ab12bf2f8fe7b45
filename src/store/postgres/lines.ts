import { join, type PlaceInLine, rejoin } from "../../domain/order.ts";
import type { RegisteredWebhook } from "../../domain/tenant-state.ts";
import type { DeliveryVerbs } from "../deliveries.ts";
import { orderHashFor } from "../order-hash.ts";
import type { NewEvent } from "../store.ts";
import type { Connection } from "./connection.ts";
import { heldBack } from "./event-schema.ts";
import { hold } from "./held-tenants.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";

/**
 * The lines in which deliveries to ordered webhooks wait for each other (`domain/order.ts`). Whoever adds to a line, or ends
 * its head, holds the webhook's lock until it commits: otherwise the first could find a head that is just ending, and the
 * second nobody behind it. This lock is taken after that of the tenant, and before those of usage rows and records: lanes have
 * it when they count.
 */
export interface Line {
  readonly webhookKey: number;
  readonly orderHash: number;
}

/**
 * Locks the lines of these webhooks until the transaction ends. Later statements see what others did with them. An advisory
 * lock, as a lock on the rows would write to the table with every batch, and would deadlock with verbs that update the webhooks
 * of an account in another order: a lane locks those of many accounts at once.
 */
export async function lockLines({ run }: Pick<Transaction, "run">, webhookKeys: Iterable<number>): Promise<void> {
  const sorted = [...new Set(webhookKeys)].sort((a, b) => a - b);
  if (sorted.length === 0) return;
  await run("select pg_advisory_xact_lock(key) from unnest($1::bigint[]) as given (key)", [arrayText(sorted)]);
}

/** Lines without duplicates, for `unnest($1::bigint[], $2::bigint[])`. */
function listsOf(lines: readonly Line[]): string[] {
  const each = [...new Map(lines.map((line) => [nameOf(line), line])).values()];
  return [arrayText(each.map(({ webhookKey }) => webhookKey)), arrayText(each.map(({ orderHash }) => orderHash))];
}

const nameOf = ({ webhookKey, orderHash }: Line) => `${webhookKey} ${orderHash}`;

const given = "unnest($1::bigint[], $2::bigint[]) as given (of_webhook, of_line)";

const isOfLine = "webhook_key = given.of_webhook and order_hash = given.of_line";

/** Not compared as a pair: the server would then walk on through all other lines of the webhook. */
const headText = `select 1 as found from pending
  where ${isOfLine} and order_hash is not null and owner is distinct from ${heldBack} limit 1`;

export const headsText = `select of_webhook::float8 as "webhookKey", of_line::float8 as "orderHash"
  from ${given} cross join lateral (${headText}) head`;

/**
 * Even if a record has become the head meanwhile, there is only ever one. An attempt from before may be being counted at this
 * moment.
 */
export const releaseNextText = `with next as materialized (
    select tenant_key, event_seq, key from ${given} cross join lateral (
      select tenant_key, event_seq, key from pending
      where owner = ${heldBack} and ${isOfLine} order by event_seq limit 1 for update) first
    left join lateral (${headText}) head on true
    where head.found is null)
  update pending set owner = null, next_attempt_at = $3::bigint
  from next cross join lateral (
    select record.ctid as place from pending record
    where record.tenant_key = next.tenant_key and record.event_seq = next.event_seq and record.key = next.key offset 0) found
  where pending.ctid = found.place
  returning webhook_key::float8 as "webhookKey", order_hash::float8 as "orderHash"`;

/**
 * To be called when the heads of these lines have ended, or left them: the next ones are due now. @returns the lines that had
 * one
 */
export async function releaseNext(
  { run }: Pick<Transaction, "run">,
  lines: readonly Line[],
  now: number,
): Promise<readonly Line[]> {
  return lines.length === 0 ? [] : run<Line>(releaseNextText, [...listsOf(lines), now]);
}

/** The lines that events join. */
export const linesOf = (
  webhooks: readonly Pick<RegisteredWebhook, "key" | "ordered">[],
  events: readonly Pick<NewEvent, "orderingKey">[],
): Line[] =>
  webhooks.flatMap((webhook) =>
    events.flatMap(({ orderingKey = null }) => {
      const orderHash = orderHashFor(webhook, orderingKey);
      return orderHash === null ? [] : [{ webhookKey: webhook.key, orderHash }];
    }),
  );

/** Lines that a transaction has locked, including what it adds to them itself. */
export interface LockedLines {
  /** Whether all of these were read. */
  cover(lines: readonly Line[]): boolean;
  join(webhookKey: number, orderHash: number | null): PlaceInLine;
  rejoin(webhookKey: number, found: Parameters<typeof rejoin>[0], orderHash: number | null): ReturnType<typeof rejoin>;
}

/** The state of lines whose webhooks are locked. */
export async function readLines({ run }: Pick<Transaction, "run">, lines: readonly Line[]): Promise<LockedLines> {
  if (lines.length === 0) return noLines;
  return lockedLines(lines, await run<Line>(headsText, listsOf(lines)));
}

function lockedLines(lines: readonly Line[], found: readonly Line[]): LockedLines {
  const known = new Set(lines.map(nameOf));
  const heads = new Set(found.map(nameOf));
  const hasHead = (webhookKey: number) => (orderHash: number) => heads.has(nameOf({ webhookKey, orderHash }));

  function note<Place extends PlaceInLine>(webhookKey: number, place: Place): Place {
    const { orderHash, isHeldBack } = place;
    if (orderHash !== null && !isHeldBack) heads.add(nameOf({ webhookKey, orderHash }));
    return place;
  }

  return {
    cover: (others) => others.every((line) => known.has(nameOf(line))),
    join: (webhookKey, orderHash) => note(webhookKey, join(orderHash, hasHead(webhookKey))),
    rejoin: (webhookKey, before, orderHash) => note(webhookKey, rejoin(before, orderHash, hasHead(webhookKey))),
  };
}

/** For what joins no line. */
export const noLines: LockedLines = lockedLines([], []);

const releasingText = `select tenant_key::float8 as "tenantKey", key::float8 as "webhookKey" from webhook
  where is_releasing order by key limit 1`;

/** For one webhook, while its lines are locked. */
export const letGoText = `with first as materialized (
    select tenant_key, event_seq, key from pending
    where owner = ${heldBack} and webhook_key = $1::bigint order by order_hash, event_seq limit $2::int for update)
  update pending set owner = null, next_attempt_at = $3::bigint, order_hash = null
  from first cross join lateral (
    select record.ctid as place from pending record
    where record.tenant_key = first.tenant_key and record.event_seq = first.event_seq and record.key = first.key offset 0) found
  where pending.ctid = found.place returning 1`;

/** Records held back for webhooks that are no longer ordered. */
export const orderVerbs = ({ pool, writes }: Pick<Connection, "pool" | "writes">): Pick<DeliveryVerbs, "endOrder"> => ({
  async endOrder(limit) {
    const [webhook] = await pool.read<{ tenantKey: number; webhookKey: number }>(releasingText);
    if (!webhook) return null;
    const { tenantKey, webhookKey } = webhook;
    const released = await writes.submit(async (tx) => {
      const { webhooks } = await hold(tx, tenantKey);
      await lockLines(tx, [webhookKey]);
      const isUnordered = webhooks.some(({ key, ordered }) => key === webhookKey && !ordered);
      const records = isUnordered ? await tx.run(letGoText, [webhookKey, limit, tx.now]) : [];
      if (records.length < limit) {
        await tx.run("update webhook set is_releasing = false where tenant_key = $1::bigint and key = $2::bigint", [
          tenantKey,
          webhookKey,
        ]);
      }
      return records.length;
    });
    return released > 0 ? [webhook] : [];
  },
});
