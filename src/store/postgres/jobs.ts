import type { Clock } from "../../lib/clock.ts";
import type { Job, Jobs } from "../jobs.ts";
import type { Node } from "./nodes.ts";
import { arrayText } from "./parameters.ts";
import type { Pool } from "./pool.ts";

/**
 * Which of several nodes does the background work: one row per job, with the incarnation of the node that has it. A job whose
 * node no longer exists may be taken by any node. So a node that stops gives its jobs back by leaving, and a dead node's jobs
 * continue once it has been rescued. A node believes that it holds a job only for as long as it may start attempts, which is
 * less than a lease.
 *
 * A node takes no job that it does not offer to do, and gives back one that it no longer offers at its next heartbeat.
 */
export interface SharedJobs extends Jobs {
  /** Called at each heartbeat: takes free jobs, and wakes the held ones, since a notification may be lost. Never rejects. */
  seek(): Promise<void>;
  /** Handles what came through `wakeChannel`. */
  hear(payload: string): void;
  close(): Promise<void>;
}

export interface JobsOptions {
  pool: Pool;
  clock: Pick<Clock, "after">;
  /** Null while this process is not a node. */
  node(): Pick<Node, "incarnation"> | null;
  /** See `Membership`. */
  mayStart(): boolean;
  onFailure(error: unknown): void;
}

export const wakeChannel = "postrider_wake";

const allJobs: readonly Job[] = ["biller", "janitor", "replayer"];
const ofEveryNode: readonly Job[] = ["janitor", "replayer"];

/** Further wakes during this time go out in the same notification. */
const wakePauseMs = 20;

export function createJobs({ pool, clock, node, mayStart, onFailure }: JobsOptions): SharedJobs {
  let held: { readonly incarnation: number; readonly jobs: ReadonlySet<string> } = { incarnation: 0, jobs: new Set() };
  const offered = new Set<Job>(ofEveryNode);
  const wakes = new Map<Job, () => void>();
  const toWake = new Set<Job>();
  let cancelWake = () => {};
  let isClosed = false;
  let seeking: Promise<void> | null = null;
  let hasRows = false;

  const holds = (job: Job) =>
    offered.has(job) && held.jobs.has(job) && held.incarnation === node()?.incarnation && mayStart();

  function wakeHere(job: Job): void {
    if (holds(job)) wakes.get(job)?.();
  }

  async function seekOnce(): Promise<void> {
    const own = node();
    if (own === null) return;
    try {
      if (!hasRows) await pool.write(rowsText, [arrayText(allJobs)]);
      hasRows = true;
      const rows = await pool.write<{ name: string }>(seekText, [
        own.incarnation,
        allJobs.length,
        arrayText([...offered]),
      ]);
      held = { incarnation: own.incarnation, jobs: new Set(rows.map(({ name }) => name)) };
    } catch (error) {
      onFailure(error);
    }
    for (const job of allJobs) wakeHere(job);
  }

  function seek(): Promise<void> {
    seeking ??= seekOnce().finally(() => {
      seeking = null;
    });
    return seeking;
  }

  return {
    holds,
    seek,

    async isHeld(job) {
      const rows = await pool.read(heldText, [job, node()?.incarnation ?? null]);
      return rows.length > 0;
    },

    async offer(job) {
      offered.add(job);
      // The look under way may have begun without it.
      await seeking;
      await seek();
    },

    withdraw: (job) => void offered.delete(job),

    hear: (payload) => {
      for (const job of allJobs) if (payload.split(",").includes(job)) wakeHere(job);
    },
    onWake: (job, wake) => void wakes.set(job, wake),

    wake(job) {
      const isAwaited = toWake.size > 0;
      toWake.add(job);
      // What other nodes are not told any more, their heartbeats find.
      if (isAwaited || isClosed) return;
      cancelWake = clock.after(wakePauseMs, () => {
        const payload = [...toWake].join(",");
        toWake.clear();
        pool.read(`select pg_notify('${wakeChannel}', $1)`, [payload]).catch(onFailure);
      });
    },

    async close() {
      isClosed = true;
      cancelWake();
      await seeking;
    },
  };
}

const rowsText = "insert into job (name) select name from unnest($1::text[]) as given(name) on conflict do nothing";

const heldText = `select 1 from job join node using (incarnation)
  where job.name = $1::text and node.incarnation is distinct from $2::int`;

/**
 * Takes free jobs that this node offers to do, by comparing who had them: of several nodes that take one at the same time, one
 * succeeds. No node takes more than its share while there are others, except for the biller: the others may be unable to do it.
 * A node whose lease has merely run out still exists: after a failover, that is true of all of them.
 */
const seekText = `with free as (
    select name, incarnation, row_number() over (order by name) as place from job
    where name = any($3::text[])
      and (incarnation is null or not exists (select 1 from node where node.incarnation = job.incarnation))),
  room as (
    select (select ceil($2::int / greatest(count(*), 1)::float8) from node)
      - (select count(*) from job where incarnation = $1::int and name = any($3::text[])) as jobs),
  taken as (
    update job set incarnation = $1::int from free, room
    where job.name = free.name and job.incarnation is not distinct from free.incarnation
      and (free.place <= room.jobs or free.name = 'biller')
      and exists (select 1 from node where incarnation = $1::int)
    returning job.name),
  given_back as (
    update job set incarnation = null where incarnation = $1::int and name <> all($3::text[]))
  select name from taken union select name from job where incarnation = $1::int and name = any($3::text[])`;
