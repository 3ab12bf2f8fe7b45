import type { Clock } from "../../lib/clock.ts";
import { judge } from "../../lib/limiter.ts";
import type { Count, Limit, Limits, Turn } from "../limits.ts";
import { OutcomeUnknown, storageUnavailable } from "./faults.ts";
import { arrayText } from "./parameters.ts";
import type { Pool, Transaction } from "./pool.ts";

/** A window that a verb works on. */
interface Window {
  readonly limit: Limit;
  /** The key in the table. */
  readonly key: string;
  /** Occurrences that still count, oldest first. */
  times: number[];
}

/** Expired rows are looked for once in this many times that a limit is asked for a turn. */
const pruneEvery = 100;
/** The most rows that such a look removes: more than can have been added since the last one. */
const prunedAtOnce = 2 * pruneEvery;
/**
 * There may be this many times the keys that are to be remembered. Nodes that look at the same moment each remove what one of
 * them should, and this is wide enough for all of them.
 */
const spareKeys = 2;

/**
 * Limits across all nodes: a row per window, with the time of each occurrence. A verb locks all rows that it concerns, then
 * checks and counts. The table is unlogged, so a crash of the server forgets it, and no commit waits for the disk.
 */
export function createLimits({ pool, clock }: { pool: Pool; clock: Pick<Clock, "now"> }): Limits {
  /** How often each limit was asked for a turn. */
  const turns = new Map<string, number>();

  /** @returns the windows, and when they were read */
  async function lock(tx: Transaction, counts: readonly Count[]): Promise<{ windows: Window[]; now: number }> {
    const windows = windowsOf(counts);
    const places = placesOf(windows);
    await tx.run("set local synchronous_commit = off");
    // Creates what is missing and locks what exists, one row after the other in this order, so there can be no deadlock.
    await tx.run(
      `insert into limit_window (name, key, times, ends_at)
       select name, key, '{}', 0 from unnest($1::text[], $2::text[]) as given(name, key) order by name, key
       on conflict (name, key) do update set ends_at = 0 where false`,
      places,
    );
    const now = Math.floor(clock.now());
    await fill(windows, now, (text) => tx.run(text, places));
    return { windows, now };
  }

  async function write(tx: Transaction, windows: readonly Window[]): Promise<void> {
    await tx.run(
      `update limit_window as w set times = given.times::bigint[], ends_at = given.ends_at
       from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as given(name, key, times, ends_at)
       where w.name = given.name and w.key = given.key`,
      [...placesOf(windows), arrayText(windows.map(({ times }) => arrayText(times))), arrayText(windows.map(endOf))],
    );
  }

  /** Removes what no longer counts, and the longest quiet ones when there are too many. Skips what others have locked. */
  async function prune(tx: Transaction, windows: readonly Window[], now: number): Promise<void> {
    for (const { name, keys } of new Set(windows.map(({ limit }) => limit))) {
      const verbs = (turns.get(name) ?? 0) + 1;
      turns.set(name, verbs);
      if (verbs % pruneEvery === 0) await tx.run(pruneText, [name, now, keys * spareKeys, prunedAtOnce]);
    }
  }

  return {
    take: (counts, others = []) =>
      whole(() =>
        pool.transact(async (tx) => {
          const { windows, now } = await lock(tx, [...counts, ...others]);
          const turn = judgeAll([...counts, ...others], windows, now);
          if (turn.ok) {
            const counted = new Set(counts.map((count) => windowOf(windows, count)));
            for (const { times } of counted) times.push(now);
            await write(tx, [...counted]);
          }
          // A refusal has created the rows that it looked at, too.
          await prune(tx, windows, now);
          return turn;
        }),
      ),

    async peek(counts) {
      const windows = windowsOf(counts);
      const now = Math.floor(clock.now());
      await fill(windows, now, (text) => pool.read(text, placesOf(windows)));
      return judgeAll(counts, windows, now);
    },

    giveBack: (counts) =>
      whole(() =>
        pool.transact(async (tx) => {
          const { windows } = await lock(tx, counts);
          for (const { times } of windows) times.pop();
          await write(tx, windows);
        }),
      ),
  };
}

/**
 * In the order of the index, which is the order in which they went quiet: all windows of one limit are equally long. Counting
 * reads only the index.
 */
export const pruneText = `delete from limit_window where name = $1 and key in (
  select key from limit_window where name = $1
    and ends_at <= (select case when count(*) > $3::int then ${Number.MAX_SAFE_INTEGER} else $2::bigint end
      from limit_window where name = $1)
  order by ends_at limit $4::int for update skip locked)`;

/** Uses the digest of a key: what a client sends may be too long for an index, or not a valid text for the server. */
const keyOf = (key: string): string => new Bun.CryptoHasher("sha256").update(key).digest("base64url");

function windowsOf(counts: readonly Count[]): Window[] {
  const windows = counts.map(({ limit, key }): Window => ({ limit, key: keyOf(key), times: [] }));
  return [...new Map(windows.map((window) => [`${window.key} ${window.limit.name}`, window])).values()];
}

const placesOf = (windows: readonly Window[]) => [
  arrayText(windows.map(({ limit }) => limit.name)),
  arrayText(windows.map(({ key }) => key)),
];

const endOf = ({ limit, times }: Window): number => {
  const last = times.at(-1);
  return last === undefined ? 0 : last + limit.windowMs;
};

function windowOf(windows: readonly Window[], { limit, key }: Count): Window {
  const digest = keyOf(key);
  const found = windows.find((window) => window.limit.name === limit.name && window.key === digest);
  if (!found) throw new Error(`The window of "${limit.name}" was not locked`);
  return found;
}

/**
 * Reads what still counts. An occurrence stamped by a clock ahead of this one counts as now, so that the window is never
 * longer than it should be.
 */
async function fill(
  windows: readonly Window[],
  now: number,
  read: (text: string) => Promise<{ name: string; key: string; times: string }[]>,
): Promise<void> {
  const rows = await read(
    `select name, key, to_json(times)::text as times from limit_window
      join unnest($1::text[], $2::text[]) as given(name, key) using (name, key)`,
  );
  for (const window of windows) {
    const row = rows.find(({ name, key }) => name === window.limit.name && key === window.key);
    const times: number[] = row ? JSON.parse(row.times) : [];
    window.times = times.filter((at) => at > now - window.limit.windowMs).map((at) => Math.min(at, now));
  }
}

function judgeAll(counts: readonly Count[], windows: readonly Window[], now: number): Turn {
  for (const count of counts) {
    const { most, windowMs } = count.limit;
    const turn = judge(windowOf(windows, count).times, now, { limit: most, windowMs });
    if (!turn.ok) return { ...turn, by: count.limit };
  }
  return { ok: true };
}

/** If it may have been counted, it is refused as well: at worst there is room for one less. */
async function whole<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof OutcomeUnknown) throw storageUnavailable("passing");
    throw error;
  }
}
