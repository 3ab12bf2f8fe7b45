import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { retireMarked } from "../../../src/store/postgres/nodes.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { loadText, readText, trimText } from "../../../src/store/postgres/stream-log.ts";
import { mostPerSecond, writeText } from "../../../src/store/postgres/stream-outbox.ts";
import type { StreamLog, Tail } from "../../../src/store/stream-log.ts";
import { streamLogContract } from "../../contract/stream/stream-log.ts";
import { until } from "../../support/api-server.ts";
import { createMigratedDatabase, describeWithPostgres, usePostgres } from "../../support/postgres.ts";

const comesTrue = (ask: () => Promise<boolean> | boolean) => until<boolean>(ask, (isTrue) => isTrue);

const openNode = (url: string) => openPostgresStore({ url, clock: systemClock, durability: "waived" });

describeWithPostgres("with PostgreSQL", () => {
  streamLogContract("the database's log", async () => {
    const { url, remove } = await createMigratedDatabase();
    const { streamLog, store } = await openNode(url);
    return {
      log: streamLog,
      async end() {
        await store.close();
        await remove();
      },
    };
  });
});

describeWithPostgres("a stream over several nodes", () => {
  const postgres = usePostgres();

  async function nodes(count: number) {
    const url = await postgres.migrated();
    const opened = await Promise.all(Array.from({ length: count }, () => openNode(url)));
    for (const { store } of opened) postgres.cleanUpFirst(() => store.close());
    const logs = opened.map(({ streamLog }) => streamLog) as [StreamLog, StreamLog, ...StreamLog[]];
    return { pool: postgres.pool(url), logs, opened };
  }

  async function watch(log: StreamLog, onMore = () => {}): Promise<Tail> {
    const tail = log.watch("t", onMore);
    await tail.ready();
    return tail;
  }
  const append = (log: StreamLog, ...ns: number[]) => {
    for (const n of ns) log.append("t", "event.accepted", () => ({ n }));
  };
  function read(tail: Tail, from = tail.first) {
    let text = "";
    for (let position = from; position < tail.end; ) {
      const { bytes, next } = tail.chunkFrom(position);
      text += new TextDecoder().decode(bytes);
      position = next;
    }
    return [...text.matchAll(/id: (.+)\ndata: (.+)\n\n/g)].map(([, id = "", data = ""]) => ({
      id,
      n: JSON.parse(data).n as number,
    }));
  }
  const numbersOf = (tail: Tail, from?: number) => read(tail, from).map(({ n }) => n);
  const after = (tail: Tail, id: string) => {
    const position = tail.positionAfter(id);
    return position === null ? null : numbersOf(tail, position);
  };
  const many = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

  test("shows on one what another says, in its order, and resumes on any", async () => {
    const { logs } = await nodes(2);
    const [a, b] = logs;
    const onB = await watch(b);
    for (const n of many(0, 300)) {
      append(a, n);
      if (n % 50 === 0) await Bun.sleep(0);
    }
    await comesTrue(() => onB.end - onB.first >= 300);
    expect(numbersOf(onB)).toEqual(many(0, 300));
    const id = read(onB)[199]?.id ?? "";
    const onA = await watch(a);
    expect(after(onA, id)).toEqual(many(200, 300));
    append(b, 300);
    await onB.ready();
    await onA.ready();
    expect(after(onA, id)).toEqual(many(200, 301));
    expect(after(onB, id)).toEqual(many(200, 301));
  });

  test("has one order for what several say at once", async () => {
    const { logs } = await nodes(3);
    const tails = await Promise.all(logs.map((log) => watch(log)));
    for (const n of many(0, 200)) {
      for (const [i, log] of logs.entries()) append(log, i * 1_000 + n);
      if (n % 20 === 0) await Bun.sleep(1);
    }
    for (const tail of tails) await tail.ready();
    for (const tail of tails) await tail.ready();
    const [first, ...rest] = tails.map((tail) => numbersOf(tail));
    expect(first).toHaveLength(600);
    for (const other of rest) expect(other).toEqual(first ?? []);
    for (const i of [0, 1, 2]) {
      const ofOne = (first ?? []).filter((n) => Math.floor(n / 1_000) === i);
      expect(ofOne).toEqual(many(i * 1_000, i * 1_000 + 200));
    }
  });

  test("loses nothing that is said once a stream is ready, on any node, again and again", async () => {
    const { logs } = await nodes(2);
    const [a, b] = logs;
    for (let round = 0; round < 15; round += 1) {
      const tail = await watch(b);
      append(a, round);
      await comesTrue(() => tail.end > tail.first);
      expect(numbersOf(tail)).toEqual([round]);
      tail.forget();
    }
  });

  test("is not written by anybody once nobody watches", async () => {
    const { logs, pool } = await nodes(2);
    const [a, b] = logs;
    const tail = await watch(b);
    tail.forget();
    let made = 0;
    // It finds out at its next look.
    await comesTrue(() => {
      const before = made;
      a.append("t", "event.accepted", () => ({ n: ++made }));
      return made === before;
    });
    await comesTrue(async () => (await pool.read("select 1 from stream_watch")).length === 0);
  }, 120_000);

  test("goes on elsewhere while one node ends and another begins", async () => {
    const { logs } = await nodes(3);
    const [a, b, c] = logs as [StreamLog, StreamLog, StreamLog];
    const onB = await watch(b);
    append(a, 1);
    await comesTrue(() => onB.end > onB.first);
    const id = onB.endId();
    const onC = await watch(c);
    onB.forget();
    append(a, 2);
    append(b, 3);
    await comesTrue(() => (after(onC, id)?.length ?? 0) === 2);
    expect(after(onC, id)?.toSorted()).toEqual([2, 3]);
  });

  test("says that messages are missing after a crash of the database, and goes on", async () => {
    const { logs, pool } = await nodes(2);
    const [a, b] = logs;
    let told = 0;
    const tail = await watch(b, () => {
      told += 1;
    });
    append(a, 1);
    await comesTrue(() => tail.end > tail.first);
    const position = tail.end;
    const id = tail.endId();
    const before = told;
    // What is not logged is empty after one.
    await pool.write("truncate stream_head, stream_message");
    await comesTrue(() => told > before && tail.first > position);
    expect(tail.positionAfter(id)).toBeNull();
    append(a, 2);
    await comesTrue(() => tail.end > tail.first);
    expect(numbersOf(tail)).toEqual([2]);
  });

  test("says that messages may be missing when a node has died", async () => {
    const url = await postgres.migrated();
    const marks: string[] = [];
    const open = (noteNode?: (mark: string) => void) =>
      openPostgresStore({ url, clock: systemClock, durability: "waived", ...(noteNode && { noteNode }) });
    const a = await open((mark) => marks.push(mark));
    const b = await open();
    for (const { store } of [a, b]) postgres.cleanUpFirst(() => store.close());
    const tail = await watch(b.streamLog);
    append(a.streamLog, 1);
    await comesTrue(() => tail.end > tail.first);
    const [id, position] = [tail.endId(), tail.end];
    await retireMarked(postgres.pool(url), marks[0] ?? "");
    await comesTrue(() => tail.first > position);
    expect(tail.positionAfter(id)).toBeNull();
    append(b.streamLog, 2);
    await comesTrue(() => tail.end > tail.first);
    expect(numbersOf(tail)).toEqual([2]);
  });

  test("shows what a node said last before it left", async () => {
    const { logs, opened } = await nodes(2);
    const [a, b] = logs;
    const tail = await watch(b);
    append(a, 1);
    await comesTrue(() => tail.end > tail.first);
    append(a, 2);
    await opened[0]?.store.close();
    await tail.ready();
    expect(numbersOf(tail)).toEqual([1, 2]);
  });

  test("says that messages are missing when a node had too much to say, and goes on", async () => {
    const { logs } = await nodes(2);
    const [a, b] = logs;
    const tail = await watch(b);
    append(a, 0);
    await comesTrue(() => tail.end > tail.first);
    const [id, position] = [tail.endId(), tail.end];
    append(a, ...many(1, mostPerSecond + 10));
    await comesTrue(() => tail.first > position);
    expect(tail.positionAfter(id)).toBeNull();
    append(a, -1);
    await comesTrue(() => numbersOf(tail).includes(-1));
  });

  test("reads on by itself when no notification comes", async () => {
    const { logs, pool } = await nodes(1);
    const tail = await watch(logs[0]);
    const body = new TextEncoder().encode('event.accepted\n{"n":7}');
    await pool.write(writeText, ["t", 1, body, "{1}", `{${body.length}}`]);
    await comesTrue(() => tail.end > tail.first);
    expect(numbersOf(tail)).toEqual([7]);
  });

  test("reads and writes by the indexes alone", async () => {
    const pool = postgres.pool(await postgres.migrated(), { size: 1 });
    await pool.write("insert into stream_head select 't' || i, '1', 5000 from generate_series(1, 2000) i");
    await pool.write(
      `insert into stream_message select 't' || t, i, '', now() from generate_series(1, 20) t, generate_series(1, 2000) i`,
    );
    await pool.write("vacuum analyze stream_head, stream_message");
    await pool.write("set plan_cache_mode = force_generic_plan");
    const calls = {
      [readText]: "('t1', 4000, 1000)",
      [loadText]: "('t1', 1000)",
      [trimText]: "('t1', 1000)",
      [writeText]: "('t1', 1, '', '{1}', '{1}')",
    };
    for (const [i, [text, call]] of Object.entries(calls).entries()) {
      await pool.write(`prepare p${i} as ${text}`);
      const plan = await pool.read<Record<string, string>>(`explain execute p${i}${call}`);
      const lines = plan.map((row) => row["QUERY PLAN"]).join("\n");
      expect(lines).toContain("stream_head_pkey");
      expect(lines).not.toContain("Seq Scan");
    }
  });
});
