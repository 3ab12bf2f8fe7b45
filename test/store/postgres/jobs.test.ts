import { expect, test } from "bun:test";
import type { Job } from "../../../src/store/jobs.ts";
import { createJobs } from "../../../src/store/postgres/jobs.ts";
import { join, rescueExpired, retire } from "../../../src/store/postgres/nodes.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { description, expire } from "./event-lane.ts";

const all: readonly Job[] = ["biller", "janitor", "replayer"];

describeWithPostgres("jobs of several nodes", () => {
  const postgres = usePostgres();
  const open = async (size = 4) => postgres.pool(await postgres.migrated(), { size });

  /** A node that may start what it likes until the test says otherwise. */
  async function worker(pool: Pool, { bills = true } = {}) {
    const may = { start: true, node: null as { incarnation: number } | null };
    const time = createManualClock();
    const failures: unknown[] = [];
    const jobs = createJobs({
      pool,
      clock: time.clock,
      node: () => may.node,
      mayStart: () => may.start,
      onFailure: (error) => failures.push(error),
    });
    if (bills) await jobs.offer("biller");
    const node = await join(pool, description);
    if (!node) throw new Error("No slot is free");
    may.node = node;
    const held = () => all.filter(jobs.holds);
    return { node, jobs, may, held, time, failures };
  }

  test("are all of a node that is alone", async () => {
    const { jobs, held } = await worker(await open());
    expect(held()).toEqual([]);
    await jobs.seek();
    expect(held()).toEqual([...all]);
  });

  test("are spread, and each is one node's, however many take them at once", async () => {
    const pool = await open(8);
    for (const count of [2, 3, 5]) {
      const nodes = await Promise.all(Array.from({ length: count }, () => worker(pool)));
      await Promise.all(nodes.map(({ jobs }) => jobs.seek()));
      await Promise.all(nodes.map(({ jobs }) => jobs.seek()));
      expect(nodes.flatMap(({ held }) => held()).toSorted()).toEqual([...all]);
      expect(Math.max(...nodes.map(({ held }) => held().length))).toBe(Math.ceil(3 / count));
      for (const { node } of nodes) await retire(pool, node.incarnation);
    }
  });

  test("go over when their node stops", async () => {
    const pool = await open();
    const [first, second] = [await worker(pool), await worker(pool)];
    await first.jobs.seek();
    await second.jobs.seek();
    expect(first.held().length + second.held().length).toBe(3);
    await retire(pool, first.node.incarnation);
    await second.jobs.seek();
    expect(second.held()).toEqual([...all]);
  });

  test("go over when their node is rescued, and not because its lease has run out", async () => {
    const pool = await open();
    const first = await worker(pool);
    await first.jobs.seek();
    await expire(pool, first.node);
    const second = await worker(pool);
    await second.jobs.seek();
    expect(second.held()).toEqual([]);
    await rescueExpired(pool);
    await second.jobs.seek();
    expect(second.held()).toEqual([...all]);
    // Its heartbeat will tell it; a look at its jobs does, too.
    await first.jobs.seek();
    expect(first.held()).toEqual([]);
  });

  test("leave payments to a node that does them, and go on without it when it no longer does", async () => {
    const pool = await open();
    const paused = await worker(pool, { bills: false });
    await paused.jobs.seek();
    expect(paused.held()).toEqual(["janitor", "replayer"]);
    const other = await worker(pool);
    await other.jobs.seek();
    expect(other.held()).toEqual(["biller"]);
    other.jobs.withdraw("biller");
    expect(other.held()).toEqual([]);
    // It has more than its share already, but nobody else would do this one.
    await paused.jobs.offer("biller");
    expect(paused.held()).toEqual(["janitor", "replayer"]);
    await other.jobs.seek();
    await paused.jobs.seek();
    expect(paused.held()).toEqual([...all]);
  });

  test("are taken by a look of its own when one begins to do them during a look", async () => {
    const { jobs, held } = await worker(await open(), { bills: false });
    await Promise.all([jobs.seek(), jobs.offer("biller")]);
    expect(held()).toEqual([...all]);
  });

  test("are not held by a node that may not start anything, nor by its next life", async () => {
    const pool = await open();
    const { jobs, may, held } = await worker(pool);
    await jobs.seek();
    may.start = false;
    expect(held()).toEqual([]);
    may.start = true;
    may.node = null;
    expect(held()).toEqual([]);
    may.node = await join(pool, description);
    expect(held()).toEqual([]);
  });

  test("stay held when the database does not answer", async () => {
    const pool = await open();
    const { jobs, held, failures } = await worker(pool);
    await jobs.seek();
    await pool.close();
    await jobs.seek();
    expect(held()).toEqual([...all]);
    expect(failures).toHaveLength(1);
  });

  test("wake nobody any more once they are closed", async () => {
    const pool = await open();
    const { jobs, time, failures } = await worker(pool);
    for (const job of ["biller", "biller", "janitor"] as const) jobs.wake(job);
    await jobs.close();
    jobs.wake("biller");
    await pool.close();
    time.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(failures).toEqual([]);
  });

  test("wait once for all that are to be woken within a moment, the same one or another", async () => {
    const { jobs, time } = await worker(await open());
    for (const job of ["biller", "biller", "janitor", "biller"] as const) jobs.wake(job);
    expect(time.timers.size).toBe(1);
    time.advance(20);
    expect(time.timers.size).toBe(0);
    for (const job of ["janitor", "janitor"] as const) jobs.wake(job);
    expect(time.timers.size).toBe(1);
  });

  test("wake at each look, for what nobody has heard of", async () => {
    const { jobs } = await worker(await open());
    const woken: Job[] = [];
    for (const job of all) jobs.onWake(job, () => woken.push(job));
    await jobs.seek();
    await jobs.seek();
    expect(woken).toEqual([...all, ...all]);
  });

  test("are woken from any node, in one notification for all that comes together", async () => {
    const url = await postgres.migrated();
    const openNode = async () => {
      const time = createManualClock();
      const opened = await openPostgresStore({
        url,
        clock: createFakeClock(),
        machineClock: time.clock,
        durability: "waived",
      });
      return { ...opened, time };
    };
    const first = await openNode();
    await first.jobs.offer("biller");
    const second = await openNode();
    await second.jobs.offer("biller");
    expect(all.filter(first.jobs.holds)).toEqual([...all]);
    expect(all.filter(second.jobs.holds)).toEqual([]);
    const woken: Job[] = [];
    const bothWoken = Promise.withResolvers<void>();
    for (const job of all) {
      first.jobs.onWake(job, () => {
        woken.push(job);
        if (woken.length === 2) bothWoken.resolve();
      });
      second.jobs.onWake(job, () => woken.push(job));
    }
    for (const job of ["replayer", "biller", "replayer"] as const) second.jobs.wake(job);
    second.time.advance(20);
    await bothWoken.promise;
    expect(woken).toEqual(["biller", "replayer"]);

    const taken = Promise.withResolvers<void>();
    second.jobs.onWake("janitor", taken.resolve);
    await first.store.close();
    second.time.advance(3_000);
    await taken.promise;
    expect(all.filter(second.jobs.holds)).toEqual([...all]);
    await second.store.close();
    expect(all.filter(second.jobs.holds)).toEqual([]);
  });
});
