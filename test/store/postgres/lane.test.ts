import { expect, test } from "bun:test";
import { DomainError } from "../../../src/domain/errors.ts";
import { OutcomeUnknown, sqlStateOf, storageUnavailable } from "../../../src/store/postgres/faults.ts";
import { join, type Node, retire } from "../../../src/store/postgres/nodes.ts";
import type { Pool, Transaction } from "../../../src/store/postgres/pool.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { createCuttingProxy } from "../../support/postgres-proxy.ts";
import { accept, description, eventLane, markOf, queueOf, whenWaiting } from "./event-lane.ts";

const refusalOf = (call: Promise<unknown>) =>
  call.then(
    (result) => result,
    (error: unknown) =>
      error instanceof DomainError ? error.code : error instanceof OutcomeUnknown ? "unknown" : sqlStateOf(error),
  );

describeWithPostgres("a lane", () => {
  const postgres = usePostgres();

  /** A node, the pool of its lane, and another for the test. */
  async function setUp() {
    const url = await postgres.migrated();
    const pool = postgres.pool(url, { size: 4 });
    const node = await join(pool, description);
    if (!node) throw new Error("No slot is free");
    return { url, pool, node, lanePool: postgres.pool(url, { size: 1 }) };
  }

  const batchOf = async (pool: Pool, node: Node) => {
    const [row] = await pool.read<{ batch: number }>("select batch::float8 as batch from lane where slot = $1", [
      markOf(node).slot,
    ]);
    return row?.batch;
  };

  /** Holds the lane's row, so that its next statement waits in the server. */
  async function holdLane(pool: Pool, node: Node, before: (tx: Transaction) => Promise<unknown> = async () => {}) {
    const held = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const ended = pool.transact(async (tx) => {
      await tx.run("select 1 from lane where slot = $1 for update", [markOf(node).slot]);
      held.resolve();
      await mayEnd.promise;
      await before(tx);
    });
    await held.promise;
    return async () => {
      mayEnd.resolve();
      await ended;
    };
  }

  /** Ends the connection that waits for the lane's row, and its statement. */
  const killWaiting = (pool: Pool) =>
    pool.read(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and state = 'active'`);

  test("writes at once what arrived while it wrote", async () => {
    const { pool, node, lanePool } = await setUp();
    const sizes: number[] = [];
    const lane = eventLane(lanePool, node, {
      async write(seqs, mark) {
        sizes.push(seqs.length);
        await accept(lanePool, seqs, mark);
        return seqs.map((result) => ({ result }));
      },
    });
    const release = await holdLane(pool, node);
    const first = lane.submit(1);
    await whenWaiting(pool, 1);
    const others = Array.from({ length: 300 }, (_, i) => lane.submit(i + 2));
    await release();
    const answers: number[] = await Promise.all([first, ...others]);
    expect(answers).toEqual(Array.from({ length: 301 }, (_, i) => i + 1));
    expect(sizes).toEqual([1, 256, 44]);
    expect(await batchOf(pool, node)).toBe(3);
    await lane.close();
  });

  test("lets a heavy job go alone, in turn with the others", async () => {
    const { node, lanePool } = await setUp();
    const batches: (readonly number[])[] = [];
    const lane = eventLane(lanePool, node, {
      async write(seqs, mark) {
        batches.push(seqs);
        await accept(lanePool, seqs, mark);
        return seqs.map((result) => ({ result }));
      },
    });
    await Promise.all([lane.submit(1), lane.submit(2, true), lane.submit(3), lane.submit(4, true)]);
    expect(batches).toEqual([[2], [1, 3], [4]]);
  });

  test("a bad job fails alone", async () => {
    const { pool, node, lanePool } = await setUp();
    const lane = eventLane(lanePool, node);
    await lane.submit(1);
    const answers = await Promise.all([2, 1, 3].map((seq) => refusalOf(lane.submit(seq))));
    expect(answers).toEqual([2, "23505", 3]);
    expect((await queueOf(pool)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  test.each([
    ["whose rows are on a part of the disk that fails", "58030", "storage_unavailable"],
    ["whose rows are on a damaged page", "XX001", "storage_damaged"],
  ])("a job %s fails alone", async (_, state, code) => {
    const { pool, node, lanePool } = await setUp();
    await pool.write(
      `create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'could not read block' using errcode = '${state}'; end $$`,
    );
    await pool.write(
      "create trigger refuse before insert on event for each row when (new.seq = 2) execute function refuse()",
    );
    const lane = eventLane(lanePool, node);
    const answers = await Promise.all([1, 2, 3].map((seq) => refusalOf(lane.submit(seq))));
    expect(answers).toEqual([1, code, 3]);
    expect((await queueOf(pool)).map(({ seq }) => seq)).toEqual([1, 3]);
  });

  test("a job that a rule refuses costs its neighbours nothing", async () => {
    const { node, lanePool } = await setUp();
    const refused = new DomainError({ kind: "invalid", code: "odd", message: "Odd." });
    const lane = eventLane(lanePool, node, {
      async write(seqs, mark) {
        await accept(
          lanePool,
          seqs.filter((seq) => seq % 2 === 0),
          mark,
        );
        return seqs.map((result) => (result % 2 === 0 ? { result } : { error: refused }));
      },
    });
    expect(await Promise.all([1, 2].map((seq) => refusalOf(lane.submit(seq))))).toEqual(["odd", 2]);
  });

  test("of a node that was declared dead writes nothing, and says so once", async () => {
    const { pool, node, lanePool } = await setUp();
    let fenced = 0;
    const lane = eventLane(lanePool, node, { onFenced: () => (fenced += 1) });
    await lane.submit(1);
    await retire(pool, node.incarnation);
    const answers = await Promise.all([2, 3].map((seq) => refusalOf(lane.submit(seq))));
    expect([...answers, await refusalOf(lane.submit(4))]).toEqual(Array(3).fill("storage_unavailable"));
    expect(fenced).toBe(1);
    expect((await queueOf(pool)).map(({ seq }) => seq)).toEqual([1]);
  });

  test("whose connection was killed before it wrote says that nothing was written, and goes on", async () => {
    const { pool, node, lanePool } = await setUp();
    const lane = eventLane(lanePool, node);
    const release = await holdLane(pool, node);
    const lost = [refusalOf(lane.submit(1)), refusalOf(lane.submit(2))];
    await whenWaiting(pool, 1);
    await killWaiting(pool);
    await whenWaiting(pool, 1, "update lane");
    // While it does not know it takes nothing on.
    expect(await refusalOf(lane.submit(3))).toBe("storage_unavailable");
    await release();
    expect(await Promise.all(lost)).toEqual(["storage_unavailable", "storage_unavailable"]);
    expect(await lane.submit(4)).toBe(4);
    expect((await queueOf(pool)).map(({ seq }) => seq)).toEqual([4]);
    expect(await batchOf(pool, node)).toBe(3);
  });

  test("whose answer is lost after it wrote finds that out, and answers", async () => {
    const { url, pool, node } = await setUp();
    const time = createManualClock();
    const lanePool = postgres.pool(url, { size: 1, clock: time.clock });
    const recalled: (readonly number[])[] = [];
    const lane = eventLane(lanePool, node, {
      async recall(seqs, batch) {
        recalled.push([batch, ...seqs]);
        return seqs.map((result) => ({ result }));
      },
    });
    const release = await holdLane(pool, node);
    const answers = [lane.submit(1), lane.submit(2)];
    await whenWaiting(pool, 1);
    // Our deadline passes, and the statement goes on in the server; what asks after it waits behind it.
    time.advance(12_000);
    await whenWaiting(pool, 2);
    await release();
    expect(await Promise.all(answers)).toEqual([1, 2]);
    expect(recalled).toEqual([[1, 1, 2]]);
    expect((await queueOf(pool)).map(({ seq }) => seq)).toEqual([1, 2]);
    expect(await lane.submit(3)).toBe(3);
    expect(await batchOf(pool, node)).toBe(2);
  });

  test("a statement that arrives after its lane has asked for it does nothing any more", async () => {
    const { pool, node, lanePool } = await setUp();
    let late: readonly [readonly number[], Parameters<typeof accept>[2]] | undefined;
    const lane = eventLane(lanePool, node, {
      async write(seqs, mark) {
        if (late === undefined) {
          late = [seqs, mark];
          throw new OutcomeUnknown(new Error("It is still on its way"));
        }
        await accept(lanePool, seqs, mark);
        return seqs.map((result) => ({ result }));
      },
    });
    expect(await refusalOf(lane.submit(1))).toBe("storage_unavailable");
    if (late) expect(await accept(pool, ...late)).toEqual([]);
    expect(await lane.submit(2)).toBe(2);
    if (late) expect(await accept(pool, ...late)).toEqual([]);
    expect((await queueOf(pool)).map(({ seq }) => seq)).toEqual([2]);
  });

  test.each([
    ["is fenced", async () => {}],
    ["is fenced, too, when it had lost its connection", () => Promise.reject(new OutcomeUnknown(new Error("Lost")))],
  ])("whose database has gone back to before what it had confirmed %s", async (_, beforeWrite) => {
    const { pool, node, lanePool } = await setUp();
    let fenced = 0;
    let hasGoneBack = false;
    const lane = eventLane(lanePool, node, {
      async write(seqs, mark) {
        if (hasGoneBack) await beforeWrite();
        const accepted = await accept(lanePool, seqs, mark);
        return accepted.length === 0 ? null : seqs.map((result) => ({ result }));
      },
      onFenced: () => (fenced += 1),
    });
    for (const seq of [1, 2, 3]) expect(await lane.submit(seq)).toBe(seq);
    await pool.write("update lane set batch = 1 where slot = $1::smallint", [markOf(node).slot]);
    hasGoneBack = true;
    expect(await refusalOf(lane.submit(4))).toBe("storage_unavailable");
    expect(await refusalOf(lane.submit(5))).toBe("storage_unavailable");
    expect(fenced).toBe(1);
    expect((await queueOf(pool)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  test.each([
    ["wrote before it was declared dead, answers", true, 1],
    ["was declared dead first, says that nothing was written", false, "storage_unavailable"],
  ])("that lost its connection and %s", async (_, wrote, answer) => {
    const { pool, node, lanePool } = await setUp();
    let fenced = 0;
    const lane = eventLane(lanePool, node, {
      async write(seqs, mark) {
        if (wrote) await accept(pool, seqs, mark);
        await retire(pool, node.incarnation);
        throw new OutcomeUnknown(new Error("The answer is lost"));
      },
      onFenced: () => (fenced += 1),
    });
    expect(await refusalOf(lane.submit(1))).toBe(answer);
    expect(await queueOf(pool)).toEqual(wrote ? [{ seq: 1, owner: null }] : []);
    expect(fenced).toBe(1);
  });

  test("whose slot another node has taken over meanwhile cannot say what became of its batch", async () => {
    const { pool, node, lanePool } = await setUp();
    const lane = eventLane(lanePool, node, {
      async write(seqs, mark) {
        await accept(pool, seqs, mark);
        await retire(pool, node.incarnation);
        await join(pool, description);
        throw new OutcomeUnknown(new Error("The answer is lost"));
      },
    });
    expect(await refusalOf(lane.submit(1))).toBe("unknown");
  });

  test("looks for what became of a batch until the database answers, but only for 5 s once the program is ending", async () => {
    const { node, lanePool } = await setUp();
    const time = createManualClock();
    let endingSince: number | null = null;
    const away = { ...lanePool, write: () => Promise.reject(storageUnavailable("passing")) };
    const lane = eventLane(away, node, {
      clock: time.clock,
      endingSince: () => endingSince,
      write: () => Promise.reject(new OutcomeUnknown(new Error("The answer is lost"))),
    });
    const retryAfter = async (ms: number) => {
      const paused = time.whenSet(500);
      time.advance(ms);
      await paused;
    };
    const paused = time.whenSet(500);
    const answer = refusalOf(lane.submit(1));
    await paused;
    await retryAfter(60_000);
    endingSince = time.clock.monotonicMs();
    await retryAfter(4_999);
    time.advance(500);
    expect(await answer).toBe("unknown");
    await lane.close();
  });

  test("that is closed writes what waits, and takes nothing more", async () => {
    const { pool, node, lanePool } = await setUp();
    const lane = eventLane(lanePool, node, { rests: true });
    const last = lane.submit(1);
    await lane.close();
    expect(await last).toBe(1);
    expect(await refusalOf(lane.submit(2))).toBe("shutting_down");
    expect((await queueOf(pool)).map(({ seq }) => seq)).toEqual([1]);
  });

  test("whose connection is cut at every other batch neither loses nor doubles one", async () => {
    const { url, pool, node } = await setUp();
    const proxy = await createCuttingProxy(url);
    const recalled: number[] = [];
    const lane = eventLane(postgres.pool(proxy.url, { size: 1 }), node, {
      async recall(seqs) {
        recalled.push(...seqs);
        return seqs.map((result) => ({ result }));
      },
    });
    const accepted: number[] = [];
    const refused: number[] = [];
    for (let seq = 1; seq <= 200; seq++) {
      if (seq % 2 === 0) void proxy.cutNext(seq % 4 === 0 ? "request" : "answer");
      const answer = await refusalOf(lane.submit(seq));
      if (answer === seq) accepted.push(seq);
      else refused.push(seq);
    }
    expect((await queueOf(pool)).map(({ seq }) => seq)).toEqual(accepted);
    // A request that never arrived was refused, and an answer that was lost was found out.
    expect(refused).toEqual(Array.from({ length: 50 }, (_, i) => (i + 1) * 4));
    expect(recalled).toEqual(Array.from({ length: 50 }, (_, i) => i * 4 + 2));
    await proxy.close();
  });
});
