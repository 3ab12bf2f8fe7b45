import { systemClock } from "../../../src/lib/clock.ts";
import { createLane, type LaneOptions, type MarkValues, markText } from "../../../src/store/postgres/lane.ts";
import type { LaneMark, Node } from "../../../src/store/postgres/nodes.ts";
import { arrayText } from "../../../src/store/postgres/parameters.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";

/** What accepting an event comes to for a lane: a row of it, and one in the queue that the node owns. */
export const acceptText = `with m as (${markText}),
  added as (insert into event (seq, tenant_key, id_tail, payload)
    select seq, 1, '', '' from m, unnest($4::bigint[]) seq returning seq)
  insert into pending (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, owner, next_attempt_at)
  select 1, seq, seq, 1, 1, 0, 0, $2::int, 0 from added returning event_seq::float8 as seq`;

export async function accept(pool: Pool, seqs: readonly number[], mark: MarkValues): Promise<number[]> {
  const rows = await pool.write<{ seq: number }>(acceptText, [...mark, arrayText(seqs)]);
  return rows.map(({ seq }) => seq);
}

export const markOf = (node: Node, which = 0): LaneMark => {
  const mark = node.lanes[which];
  if (!mark) throw new Error(`The node has no lane ${which}`);
  return mark;
};

/** A lane that accepts events by their numbers, and answers with them. */
export const eventLane = (pool: Pool, node: Node, options: Partial<LaneOptions<number, number>> = {}) =>
  createLane<number, number>({
    pool,
    mark: markOf(node),
    incarnation: node.incarnation,
    clock: systemClock,
    async write(seqs, mark) {
      const accepted = await accept(pool, seqs, mark);
      return accepted.length === 0 ? null : seqs.map((result) => ({ result }));
    },
    recall: async (seqs) => seqs.map((result) => ({ result })),
    onFenced() {},
    endingSince: () => null,
    rests: false,
    ...options,
  });

export const description = { name: "a test", listener: "127.0.0.1:0", schema: 1, lanes: 2 };

/** As when nothing was heard of it for a lease. */
export const expire = (pool: Pool, { incarnation }: Node) =>
  pool.write("update node set lease_until = clock_timestamp() - interval '1 millisecond' where incarnation = $1", [
    incarnation,
  ]);

/** Rows of the queue: event and owner. */
export const queueOf = async (pool: Pool) => [
  ...(await pool.read<{ seq: number; owner: number | null }>(
    "select event_seq::float8 as seq, owner from pending order by event_seq",
  )),
];

/** Resolves when so many statements that begin so wait for a lock in this database. */
export async function whenWaiting(pool: Pool, count: number, beginning = ""): Promise<void> {
  const text = `select count(*)::int as waiting from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and state = 'active' and starts_with(query, $1)`;
  for (;;) {
    const [row] = await pool.read<{ waiting: number }>(text, [beginning]);
    if ((row?.waiting ?? 0) >= count) return;
    await Bun.sleep(2);
  }
}
