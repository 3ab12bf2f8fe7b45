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
 * A node that does not note it in time is a problem for no longer than a lease: its heartbeat counts as confirmed only once
 * the changes from before it are heeded, so after a lease it has either heeded them or no longer relies on anything.
 *
 * A database that has gone back to an earlier state, as after a failover to a standby that lagged behind, gives numbers again.
 * A node that has heeded a number which is no longer there, or finds its own note older than it was, has to let go of
 * everything, and begins again at the number that is there now.
 */
export interface Changes {
  /** Numbers and writes them, in a transaction. Must be the last thing in it: from here on all other changes wait. */
  write(tx: Transaction, changes: readonly SharedChange[]): Promise<number>;
  /** To be called once that is committed: resolves when no node relies on the state before it. Never rejects. */
  passed(number: number): Promise<void>;
  /**
   * Reads and heeds everything new that was committed before the call. On the first call only later changes are new, since
   * nothing is kept yet. @throws as a read of the pool does
   */
  catchUp(): Promise<void>;
}

export interface ChangesOptions {
  pool: Pool;
  clock: Clock;
  /** Null while this process is not a node. */
  node(): Node | null;
  /**
   * Drops what follows from the state before these changes, in their order; once it has resolved, nothing relies on that
   * state.
   */
  heed(changes: readonly SharedChange[]): Promise<void>;
  /** Called when the database has gone back: whatever this node keeps may follow from changes that never were. */
  onGoneBack(incarnation: number): void;
  onFailure(error: unknown): void;
}

/** Something that only the backend has to act on: somebody is watching a tenant's stream. */
export interface StreamWatched {
  readonly kind: "stream_watched";
  readonly tenantId: string;
  readonly incarnation: number;
}

export type SharedChange = Change | StreamWatched;

export const changeChannel = "postrider_change";

/** Pauses between checks whether the others have heeded it. */
const firstPauseMs = 2;
const longestPauseMs = 100;
const pauseAfterFailureMs = 500;

/** A caller that waits until a change has passed. */
interface Waiter {
  readonly number: number;
  readonly since: number;
  resolve(): void;
}

/** What is new, as of one moment: a row for each change, or one without. */
const newsText = `select last::float8 as last, own.heeded::float8 as noted, number::float8 as number, body
  from change_head left join node own on own.incarnation = $2::int left join change on number > $1::bigint order by number`;

interface News {
  readonly last: number;
  /** What the row of this node says that it has heeded; null: it has none. */
  readonly noted: number | null;
  readonly number: number | null;
  readonly body: string | null;
}

export function createChanges({ pool, clock, node, heed, onGoneBack, onFailure }: ChangesOptions): Changes {
  /** Number of the latest change that was heeded; null until the first number is known. */
  let heeded: number | null = null;
  /** What the node's row says about that. */
  let noted = { incarnation: 0, number: 0 };
  let underWay: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  let waiters: readonly Waiter[] = [];
  let isWatching = false;
  /** A caller has come since the others were last told. */
  let isNews = false;
  let pauseMs = firstPauseMs;
  let endPause = () => {};

  /** Others may have taken a lost number by now, but the note of this node, which came after the change, is gone with it. */
  function hasGoneBack({ last, noted: found }: News, own: Node | null): boolean {
    if (last < (heeded ?? 0)) return true;
    return found !== null && noted.incarnation === own?.incarnation && found < noted.number;
  }

  async function read(): Promise<void> {
    const own = node();
    const rows = await pool.read<News>(newsText, [heeded, own?.incarnation ?? null]);
    const [head] = rows;
    if (!head) throw new Error("The row of change_head is not there");
    if (hasGoneBack(head, own)) {
      heeded = head.last;
      noted = { incarnation: own?.incarnation ?? 0, number: head.noted ?? 0 };
      // Who is no node has let go of everything already.
      if (own !== null) onGoneBack(own.incarnation);
      return;
    }
    const made = rows.flatMap(({ body }) => (body === null ? [] : [JSON.parse(body)]));
    if (made.length > 0) await heed(made);
    heeded = head.last;
    await note(head.last);
  }

  /** The node may be another one by now, which has heeded all of that, too. */
  async function note(number: number): Promise<void> {
    const own = node();
    if (own === null || (noted.incarnation === own.incarnation && noted.number >= number)) return;
    await pool.write("update node set heeded = $1::bigint where incarnation = $2::int and heeded < $1::bigint", [
      number,
      own.incarnation,
    ]);
    noted = { incarnation: own.incarnation, number };
  }

  /** One at a time; a call made while one is in progress gets the one that begins after it. */
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

  /** The number up to which all living nodes have heeded, including this process. */
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

  /** Runs until nobody waits. Each look serves all who do. */
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

  /** Also resolves those who have waited for a whole lease. */
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
