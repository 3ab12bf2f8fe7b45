import type { Change } from "../../domain/change.ts";
import type { Clock } from "../../lib/clock.ts";
import { leaseMs, type Node } from "./nodes.ts";
import { arrayText } from "./parameters.ts";
import type { Pool, Transaction } from "./pool.ts";

/**
 * How a change reaches every node before the verb that made it is answered.
 *
 *   verb: begin … number the change, write it … commit ─▶ notify ─▶ wait until every living node has heeded the number ─▶ answer
 *   node: told, or at a heartbeat ─▶ read what is new, in order ─▶ let go of what followed from before ─▶ note the number
 *
 * A node that does not note it in time is no problem for longer than a lease: its heartbeat is only taken for confirmed
 * once the changes from before it are heeded, so after a lease it has heeded them, or rests on nothing any more.
 */
export interface Changes {
  /** Numbers and writes them, in a transaction. The last thing in it: from here on all other changes wait. */
  write(tx: Transaction, changes: readonly SharedChange[]): Promise<number>;
  /** Once that is committed: resolves when no node rests on the state before. Never rejects. */
  passed(number: number): Promise<void>;
  /**
   * Reads and heeds what is new, all that was committed before the call. The first time only what comes later is new, as
   * nothing is kept yet. @throws as a read of the pool does
   */
  catchUp(): Promise<void>;
}

export interface ChangesOptions {
  pool: Pool;
  clock: Clock;
  /** Null while this process is no node. */
  node(): Node | null;
  /** Lets go of what follows from the state before them; from its answer on nothing rests on that. In their order. */
  heed(changes: readonly SharedChange[]): Promise<void>;
  onFailure(error: unknown): void;
}

/** Something that only the backend has to act on: somebody watches the stream of a tenant. */
export interface StreamWatched {
  readonly kind: "stream_watched";
  readonly tenantId: string;
  readonly incarnation: number;
}

export type SharedChange = Change | StreamWatched;

export const changeChannel = "postrider_change";

/** Pauses between looks whether the others have heeded it. */
const firstPauseMs = 2;
const longestPauseMs = 100;
const pauseAfterFailureMs = 500;

/** Somebody who waits until a change has passed. */
interface Waiter {
  readonly number: number;
  readonly since: number;
  resolve(): void;
}

export function createChanges({ pool, clock, node, heed, onFailure }: ChangesOptions): Changes {
  /** Number of the latest change that was heeded; null until it is known which is the first. */
  let heeded: number | null = null;
  /** What the node's row says of that. */
  let noted = { incarnation: 0, number: 0 };
  let underWay: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  let waiters: readonly Waiter[] = [];
  let isWatching = false;
  /** Somebody has come since the others were told last. */
  let isNews = false;
  let pauseMs = firstPauseMs;
  let endPause = () => {};

  async function readFrom(latest: number): Promise<number> {
    const rows = await pool.read<{ number: number; body: string }>(
      "select number::float8 as number, body from change where number > $1::bigint order by number",
      [latest],
    );
    if (rows.length > 0) await heed(rows.map(({ body }) => JSON.parse(body)));
    return rows.at(-1)?.number ?? latest;
  }

  async function lastNumber(): Promise<number> {
    const [head] = await pool.read<{ last: number }>("select last::float8 as last from change_head");
    return head?.last ?? 0;
  }

  async function read(): Promise<void> {
    const number = heeded === null ? await lastNumber() : await readFrom(heeded);
    heeded = number;
    const own = node();
    if (own === null || (noted.incarnation === own.incarnation && noted.number >= number)) return;
    await pool.write("update node set heeded = $1::bigint where incarnation = $2::int and heeded < $1::bigint", [
      number,
      own.incarnation,
    ]);
    noted = { incarnation: own.incarnation, number };
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

  /** Up to which number all who live have heeded, this process among them. */
  async function passedNumber(): Promise<number> {
    if (isNews) {
      isNews = false;
      await pool.read(`select pg_notify('${changeChannel}', '')`);
      await catchUp();
    }
    const [living] = await pool.read<{ lowest: number | null }>(
      "select min(heeded)::float8 as lowest from node where lease_until > clock_timestamp()",
    );
    return Math.min(heeded ?? 0, living?.lowest ?? Number.POSITIVE_INFINITY);
  }

  /** Until nobody waits. One look is for all who do. */
  async function watch(): Promise<void> {
    isWatching = true;
    while (waiters.length > 0) {
      let passed = 0;
      try {
        passed = await passedNumber();
      } catch (error) {
        onFailure(error);
        isNews = true;
        pauseMs = pauseAfterFailureMs;
      }
      answer(passed);
      if (waiters.length > 0) await pause();
    }
    isWatching = false;
  }

  /** Also those who have waited for a lease. */
  function answer(passed: number): void {
    const latestStart = clock.monotonicMs() - leaseMs;
    const isAnswered = ({ number, since }: Waiter) => number <= passed || since <= latestStart;
    const answered = waiters.filter(isAnswered);
    waiters = waiters.filter((waiter) => !isAnswered(waiter));
    for (const { resolve } of answered) resolve();
  }

  async function pause(): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = clock.after(pauseMs, resolve);
      endPause = () => {
        cancel();
        resolve();
      };
    });
    endPause = () => {};
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }

  return {
    catchUp,

    async write(tx, changes) {
      const [head] = await tx.run<{ last: number }>(
        `with head as (update change_head set last = last + $1::int returning last),
           written as (insert into change (number, body)
             select last - $1::int + place, body from head, unnest($2::text[]) with ordinality as made (body, place))
         select last::float8 as last from head`,
        [changes.length, arrayText(changes.map((change) => JSON.stringify(change)))],
      );
      if (!head) throw new Error("The row of change_head is not there");
      return head.last;
    },

    passed: (number) =>
      new Promise((resolve) => {
        waiters = [...waiters, { number, since: clock.monotonicMs(), resolve }];
        isNews = true;
        pauseMs = firstPauseMs;
        if (isWatching) endPause();
        else void watch();
      }),
  };
}
