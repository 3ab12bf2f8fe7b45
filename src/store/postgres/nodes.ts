import type { EndedNode, LivingNode, NodeStanding } from "../node-lease.ts";
import { laneSlots, nodeSlots } from "./event-schema.ts";
import { arrayText } from "./parameters.ts";
import type { Pool, Transaction, Value } from "./pool.ts";
import { gapsText } from "./stream-outbox.ts";

/**
 * The nodes that share a database. Each holds a slot under an incarnation, a number that is never given twice, for as long as
 * its lease goes on; leases go only by the clock of the database. What a node owns in the queue carries its incarnation.
 *
 *   free ─ join ─▶ held ─ heartbeat ─▶ held …
 *                   │ the lease runs out, and another node sees it; or the node leaves
 *                   ▼
 *                 rescued: its lanes are fenced, then what it owned is unowned, then the slot is free
 */
export interface Node {
  readonly slot: number;
  readonly incarnation: number;
  /** Identifies it among all nodes that ever were, including those of other databases and of earlier states of this one. */
  readonly mark: string;
  readonly lanes: readonly LaneMark[];
}

/** Where a lane of a node stands. */
export interface LaneMark {
  readonly slot: number;
  /** Number of the last batch written, whichever node had the lane then. */
  readonly batch: number;
}

export interface NodeDescription {
  /** For people. */
  name: string;
  /** See `LivingNode`. */
  listener: string;
  /** Migrations that its program knows. */
  schema: number;
  /** How many lanes it writes through, up to `laneSlots`. */
  lanes: number;
  /** Ids of the master keys that it has; see `KeyOfAll`. @default none */
  keys?: string;
  /** Called once it has its place, before anybody else sees it. @throws when it may not have the place; then it has none */
  admit?(tx: Transaction): Promise<void>;
}

/** How long after its last heartbeat a node is taken for dead. */
export const leaseMs = 20_000;

const leaseText = `clock_timestamp() + interval '${leaseMs} milliseconds'`;

/** Includes when it joined, in microseconds: a database that was restored gives the same numbers again. */
const markText = "incarnation || '@' || (extract(epoch from joined_at) * 1000000)::bigint";

/** Another node may take the same free slot at the same moment; then the next one is tried. */
const mostTries = nodeSlots;

/** Takes the lowest free slot. @returns null when none is free */
export async function join(pool: Pool, description: NodeDescription): Promise<Node | null> {
  for (let tries = 0; tries < mostTries; tries++) {
    const outcome = await pool.transact((tx) => take(tx, description));
    if (outcome !== "taken") return outcome === "full" ? null : outcome;
  }
  return null;
}

async function take(tx: Transaction, { name, listener, schema, lanes, keys = "", admit }: NodeDescription) {
  const [free] = await tx.run<{ slot: number }>(
    `select s.slot from generate_series(0, ${nodeSlots - 1}) as s(slot)
      where not exists (select 1 from node where node.slot = s.slot) order by s.slot limit 1`,
  );
  if (!free) return "full";
  const [taken] = await tx.run<Pick<Node, "incarnation" | "mark">>(
    `insert into node (slot, incarnation, joined_at, lease_until, name, listener, schema, heeded, keys)
     select $1, nextval('node_incarnation'), clock_timestamp(), ${leaseText}, $2, $3, $4, last, $5 from change_head
     on conflict (slot) do nothing returning incarnation, ${markText} as mark`,
    [free.slot, name, listener, schema, keys],
  );
  if (!taken) return "taken";
  await admit?.(tx);
  const marks = await tx.run<LaneMark>(
    `insert into lane (slot, incarnation, batch)
     select $1::int * ${laneSlots} + i, $2, 0 from generate_series(0, $3::int - 1) i
     on conflict (slot) do update set incarnation = excluded.incarnation
     returning slot, batch::float8 as batch`,
    [free.slot, taken.incarnation, lanes],
  );
  return { slot: free.slot, ...taken, lanes: [...marks].sort((a, b) => a.slot - b.slot) };
}

/** What the answer to a heartbeat says. */
export interface Beat {
  /** The database's clock when it extended the lease, in ms since the Unix epoch. */
  readonly now: number;
  /** Every node whose lease has not run out, including this one. */
  readonly living: readonly LivingNode[];
}

/**
 * Extends the lease, and announces where the node listens and which master keys it has. The list is from before the
 * statement, when this node may have been late. The mark is compared, since a database that has gone back to an earlier state
 * may give the same incarnation again.
 * @returns null: the node was declared dead, and what it owned belongs to others
 */
export async function beat(
  pool: Pool,
  { slot, incarnation, mark }: Pick<Node, "slot" | "incarnation" | "mark">,
  listener: string,
  keys = "",
): Promise<Beat | null> {
  const rows = await pool.write<LivingNode & { now: number }>(
    `with own as (update node set lease_until = ${leaseText}, listener = $3, keys = $4
                  where slot = $1 and incarnation = $2 and ${markText} = $5 returning 1)
     select slot, incarnation, name, listener, (extract(epoch from clock_timestamp()) * 1000)::float8 as now
     from node where exists (select 1 from own) and (lease_until > clock_timestamp() or incarnation = $2) order by slot`,
    [slot, incarnation, listener, keys, mark],
  );
  const [first] = rows;
  if (!first) return null;
  return { now: first.now, living: rows.map(({ now: _, ...living }) => living) };
}

/** Every node that holds a slot, for people. @param own incarnation of this process, if it has one */
export async function listNodes(pool: Pool, own: number | undefined): Promise<NodeStanding[]> {
  const rows = await pool.read<Omit<NodeStanding, "isSelf" | "jobs"> & { jobs: string }>(
    `select slot, incarnation, name, listener, schema, (extract(epoch from joined_at) * 1000)::float8 as since,
       greatest(0, extract(epoch from lease_until - clock_timestamp()) * 1000)::float8 as "leaseLeftMs",
       greatest(0, ${leaseMs} - extract(epoch from lease_until - clock_timestamp()) * 1000)::float8 as "lastBeatMsAgo",
       lease_until > clock_timestamp() as "isAlive",
       coalesce((select string_agg(job.name, ',' order by job.name) from job
                  where job.incarnation = node.incarnation), '') as jobs
     from node order by slot`,
  );
  return rows.map(({ jobs, ...row }) => ({
    ...row,
    jobs: jobs === "" ? [] : jobs.split(","),
    isSelf: row.incarnation === own,
  }));
}

/** Whether the lease of a node has run out that nobody is ending already. */
export async function hasExpired(pool: Pool): Promise<boolean> {
  const found = await pool.read(
    "select 1 from node where lease_until < clock_timestamp() limit 1 for share skip locked",
  );
  return found.length > 0;
}

/**
 * Ends the nodes whose leases have run out. Only a node that has itself been in touch with the database for a whole lease may
 * do this: after a failover, or a pause of the server, all leases have run out, and nobody is dead.
 *
 * @param pool has no deadline of seconds: with a long queue this takes minutes
 * @returns them
 */
export const rescueExpired = (pool: Pool): Promise<EndedNode[]> =>
  rescue(pool, "lease_until < clock_timestamp() order by slot for update skip locked");

/**
 * Ends one node, whatever its lease: one that is leaving, and has written everything it had to write. If it takes too long, it
 * is rescued when the lease has run out.
 */
export const retire = (pool: Pool, incarnation: number): Promise<EndedNode[]> =>
  end(pool, "incarnation = $1 for update", [incarnation]);

/** Ends a node whose process is known to have ended, unless another node already has. */
export const retireMarked = (pool: Pool, mark: string): Promise<EndedNode[]> =>
  rescue(pool, `${markText} = $1::text for update`, [mark]);

/** Tells the followers of streams that messages may be missing: a node writes them down 50 ms after it has acted. */
const rescue = (pool: Pool, which: string, values: readonly Value[] = []): Promise<EndedNode[]> =>
  end(pool, which, values, (tx, listed) => tx.run(gapsText, listed));

/**
 * One transaction, in this order. Each step is a statement of its own, which sees everything committed before it began:
 *
 * 1. the nodes, locked: a late heartbeat waits, and finds nothing;
 * 2. their lanes lose their incarnation: that waits for the statement that a lane has under way, and fences later ones;
 * 3. what they own is unowned, including what that last statement added. In one statement with 2, what a late accept commits
 *    meanwhile would be missed, and stay owned by a dead node. Without an index on the owner it reads the whole queue:
 *    half a second for a million rows;
 * 4. their slots are free.
 */
function end(
  pool: Pool,
  which: string,
  values: readonly Value[],
  tellOthers: (tx: Transaction, listed: string[]) => Promise<unknown> = async () => {},
): Promise<EndedNode[]> {
  return pool.transact(async (tx) => {
    const ended = await tx.run<Omit<EndedNode, "deliveries">>(
      `select incarnation, name from node where ${which}`,
      values,
    );
    if (ended.length === 0) return [];
    const listed = [arrayText(ended.map(({ incarnation }) => incarnation))];
    await tx.run("update lane set incarnation = null where incarnation = any($1::int[])", listed);
    const owned = await tx.run<Omit<EndedNode, "name">>(
      `with freed as (update pending set owner = null from unnest($1::int[]) as ended(incarnation)
                      where owner = ended.incarnation returning ended.incarnation)
       select incarnation, count(*)::float8 as deliveries from freed group by incarnation`,
      listed,
    );
    await tellOthers(tx, listed);
    await tx.run("delete from node where incarnation = any($1::int[])", listed);
    const deliveries = new Map(owned.map((each) => [each.incarnation, each.deliveries]));
    return ended.map((node) => ({ ...node, deliveries: deliveries.get(node.incarnation) ?? 0 }));
  });
}
