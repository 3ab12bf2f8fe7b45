import type { Change } from "../../domain/change.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { leaseMs, type Node } from "./nodes.ts";
import type { Pool, Transaction } from "./pool.ts";

/**
 * How a change reaches every node before the verb that made it is answered.
 *
 *   verb: begin … number the change, write it … commit ─▶ notify ─▶ wait until every living node has heeded the number ─▶ answer
 *   node: told, or at a heartbeat ─▶ read what is new, in order ─▶ let go of what followed from before ─▶ note the number
 *
 * A node that does not note it in time is no problem for longer than a lease: it renews that in a statement that is only
 * taken for confirmed once the changes are heeded, so after a lease it has heeded them, or acts on nothing any more.
 */
export interface Changes {
  /** Numbers and writes them, in a transaction. The last thing in it: from here on all other changes wait. */
  write(tx: Transaction, changes: readonly Change[]): Promise<number>;
  /** Once that is committed: resolves when no node rests on the state before. Never rejects. */
  passed(number: number): Promise<void>;
  /** Reads and heeds what is new. @throws as a read of the pool does */
  catchUp(): Promise<void>;
  /** This process is another node from now on, which has seen nothing. */
  beginAt(node: Node): void;
}

export interface ChangesOptions {
  pool: Pool;
  clock: Clock;
  /** Null while this process is no node. */
  node(): Node | null;
  /** Lets go of what follows from the state before; from its answer on nothing rests on that. */
  heed(change: Change): Promise<void>;
  onFailure(error: unknown): void;
}

export const changeChannel = "postrider_change";

/** Pauses between looks whether the others have heeded it. */
const firstPauseMs = 2;
const longestPauseMs = 100;
const pauseAfterFailureMs = 500;

export function createChanges({ pool, clock, node, heed, onFailure }: ChangesOptions): Changes {
  let heeded = 0;
  let underWay: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  async function read(): Promise<void> {
    const rows = await pool.read<{ number: number; body: string }>(
      "select number::float8 as number, body from change where number > $1::bigint order by number",
      [heeded],
    );
    for (const { number, body } of rows) {
      await heed(JSON.parse(body));
      heeded = Math.max(heeded, number);
    }
  }

  /** One at a time; whoever comes while one is under way gets the one that begins after it. */
  function catchUp(): Promise<void> {
    if (underWay === null) {
      underWay = read().finally(() => {
        underWay = null;
      });
      return underWay;
    }
    next ??= underWay
      .catch(() => {})
      .then(() => {
        next = null;
        return catchUp();
      });
    return next;
  }

  /** @returns whether all who live have heeded it, this node among them */
  async function isPassed(number: number): Promise<boolean> {
    if (heeded < number) await catchUp();
    const own = node();
    const [row] = await pool.write<{ waits: boolean }>(
      `with own as (update node set heeded = $1::bigint where incarnation = $2::int and heeded < $1::bigint)
       select exists (select 1 from node where heeded < $1::bigint and incarnation <> $2::int
         and lease_until > clock_timestamp()) as waits`,
      [number, own?.incarnation ?? 0],
    );
    return row?.waits === false;
  }

  return {
    catchUp,
    beginAt(joined) {
      heeded = joined.heeded;
    },

    async write(tx, changes) {
      const [head] = await tx.run<{ last: number }>(
        "update change_head set last = last + $1::int returning last::float8 as last",
        [changes.length],
      );
      if (!head) throw new Error("The row of change_head is not there");
      const first = head.last - changes.length + 1;
      for (const [i, change] of changes.entries()) {
        await tx.run("insert into change (number, body) values ($1, $2)", [first + i, JSON.stringify(change)]);
      }
      return head.last;
    },

    async passed(number) {
      const startedAt = clock.monotonicMs();
      pool.read(`select pg_notify('${changeChannel}', '')`).catch(onFailure);
      let pauseMs = firstPauseMs;
      while (clock.monotonicMs() - startedAt < leaseMs) {
        try {
          if (await isPassed(number)) return;
          pauseMs = Math.min(pauseMs * 2, longestPauseMs);
        } catch (error) {
          onFailure(error);
          pauseMs = pauseAfterFailureMs;
        }
        await sleep(clock, pauseMs);
      }
    },
  };
}
