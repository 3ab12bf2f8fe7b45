import { afterAll, expect, spyOn, test } from "bun:test";
import { sql } from "drizzle-orm";
import { DomainError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { OutcomeUnknown, sqlStateOf } from "../../../src/store/postgres/faults.ts";
import { createListener } from "../../../src/store/postgres/listener.ts";
import { arrayText, packBytes } from "../../../src/store/postgres/parameters.ts";
import { createPool, type PoolOptions } from "../../../src/store/postgres/pool.ts";
import { createFastClock } from "../../support/fast-clock.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { patienceMs } from "../../support/patience.ts";
import { describeWithOwnServer, describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { createCuttingProxy } from "../../support/postgres-proxy.ts";
import { administer, type OwnServer, sharedServer, startFastServer } from "../../support/postgres-server.ts";
import { whenWaiting } from "./event-lane.ts";

/** What a call that failed was refused with. */
const refusalOf = async (call: Promise<unknown>) => {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error instanceof DomainError) return error.code;
  return error instanceof OutcomeUnknown ? "unknown" : error;
};

/** Fails in the way that is named, as the server would. */
const failing = (state: string) => `do $$ begin raise exception 'as asked' using errcode = '${state}'; end $$`;

describeWithPostgres("a pool of connections", () => {
  const postgres = usePostgres();

  async function open(options: Partial<PoolOptions> = {}) {
    const url = options.url ?? (await postgres.database());
    const pool = postgres.pool(url, options);
    return { pool, url, server: await sharedServer() };
  }

  /** Resolves when the server works on a statement with this text. */
  async function whenAtWork(text: string): Promise<void> {
    const server = await sharedServer();
    const asked = `select 1 from pg_stat_activity where state = 'active' and query = '${text.replaceAll("'", "''")}'`;
    const until = performance.now() + patienceMs;
    while ((await administer(server, asked)).length === 0 && performance.now() < until) await Bun.sleep(5);
  }

  const terminate = async (text: string) => {
    await whenAtWork(text);
    const where = `state = 'active' and query = '${text.replaceAll("'", "''")}'`;
    await administer(await sharedServer(), `select pg_terminate_backend(pid) from pg_stat_activity where ${where}`);
  };

  test("finds nothing by a text with U+0000, which a transaction that writes refuses", async () => {
    const { pool } = await open();
    const [asked, values] = ["select $1::text as found", ["a\0b"]] as const;
    expect(await pool.read(asked, values)).toEqual([]);
    expect(await pool.db.execute(sql`select ${"a\0b"}::text as found`)).toEqual([]);
    expect(await pool.snapshot(({ run }) => run(asked, values))).toEqual([]);
    expect(await refusalOf(pool.transact(({ run }) => run(asked, values)))).toBe("invalid_request");
    expect([...(await pool.read(asked, ["b"]))]).toEqual([{ found: "b" }]);
  });

  test("sets its deadlines on every connection", async () => {
    const { pool } = await open();
    const asked = `select current_setting('statement_timeout') as statement,
      current_setting('idle_in_transaction_session_timeout') as idle, pg_sleep(0.02)`;
    const rows = await Promise.all([pool.read(asked), pool.read(asked)]);
    for (const row of rows.flat()) expect(row).toMatchObject({ statement: "10s", idle: "10s" });
  });

  test("without deadlines waits for the first row of a copy, however long it is sorted", async () => {
    const time = createManualClock();
    const { pool, url } = await open({ statementTimeoutMs: 0, clock: time.clock });
    const other = postgres.pool(url);
    await other.write("create table kept (a int)");
    await other.write("insert into kept values (1)");
    const isHeld = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const holding = other.transact(async (tx) => {
      await tx.run("lock table kept in access exclusive mode");
      isHeld.resolve();
      await mayEnd.promise;
    });
    await isHeld.promise;
    const copied = Array.fromAsync(pool.copyOut("copy (select a from kept order by a) to stdout"));
    await whenWaiting(other, 1, "copy");
    time.advance(3_600_000);
    mayEnd.resolve();
    await holding;
    expect(Buffer.concat(await copied).toString()).toBe("1\n");
  });

  test("reads, writes, and takes a transaction back whole", async () => {
    const { pool } = await open();
    await pool.write("create table kept (a int)");
    await pool.transact(async (tx) => {
      await tx.run("insert into kept values ($1)", [1]);
      await tx.run("insert into kept values ($1)", [2]);
    });
    const refused = pool.transact(async (tx) => {
      await tx.run("insert into kept values (3)");
      throw new DomainError({ kind: "invalid", code: "refused", message: "Refused." });
    });
    expect(await refusalOf(refused)).toBe("refused");
    expect([...(await pool.read("select a from kept order by a"))]).toEqual([{ a: 1 }, { a: 2 }]);
  });

  test("what the builder's statements fail with is what all others do", async () => {
    const { pool } = await open();
    expect(await refusalOf(pool.db.execute(sql.raw(failing("53300"))))).toBe("storage_unavailable");
    let tries = 0;
    await pool.transact(async ({ db }) => {
      tries += 1;
      if (tries === 1) await db.execute(sql.raw(failing("40001")));
    });
    expect(tries).toBe(2);
    const refused = pool.transact(({ db }) => db.execute(sql.raw(failing("23505"))));
    expect(sqlStateOf(await refusalOf(refused))).toBe("23505");
  });

  test("a snapshot is of one moment", async () => {
    const { pool } = await open();
    await pool.write("create table kept (a int)");
    const count = "select count(*)::int as n from kept";
    const seen = await pool.snapshot(async (tx) => {
      const before = await tx.run(count);
      await pool.write("insert into kept values (1)");
      return [before[0], (await tx.run(count))[0]];
    });
    expect(seen).toEqual([{ n: 0 }, { n: 0 }]);
  });

  test("a killed connection leaves open what became of a write, and nothing of a read", async () => {
    const { pool } = await open();
    const write = refusalOf(pool.write("select pg_sleep(60), 'write'"));
    await terminate("select pg_sleep(60), 'write'");
    expect(await write).toBe("unknown");
    const read = refusalOf(pool.read("select pg_sleep(60), 'read'"));
    await terminate("select pg_sleep(60), 'read'");
    expect(await read).toBe("storage_unavailable");
    expect(await pool.read("select 1 as a")).toHaveLength(1);
  });

  test("a transaction whose connection is lost before it commits has written nothing", async () => {
    const { pool } = await open();
    await pool.write("create table kept (a int)");
    const lost = pool.transact(async (tx) => {
      await tx.run("insert into kept values (1)");
      await tx.run("select pg_terminate_backend(pg_backend_pid())");
    });
    expect(await refusalOf(lost)).toBe("storage_unavailable");
    expect(await pool.read("select a from kept")).toHaveLength(0);
  });

  test("after our own deadline all its connections are given up, and new ones serve the next call", async () => {
    const { clock, advance, timers } = createManualClock();
    const { pool } = await open({ clock, size: 2 });
    const calls = [
      refusalOf(pool.write("select pg_sleep(60), 'first'")),
      refusalOf(pool.read("select pg_sleep(60), 'second'")),
    ];
    await whenAtWork("select pg_sleep(60), 'first'");
    await whenAtWork("select pg_sleep(60), 'second'");
    calls.push(refusalOf(pool.transact((tx) => tx.run("select 1"))));
    advance(12_000);
    // The third never got a connection, so it never began.
    expect(await Promise.all(calls)).toEqual(["unknown", "storage_unavailable", "storage_unavailable"]);
    expect(await pool.read("select 1 as a")).toHaveLength(1);
    expect(timers.size).toBe(0);
  });

  test("each statement of a transaction has its own time", async () => {
    const { clock, advance, timers } = createManualClock();
    const { pool } = await open({ clock });
    await pool.transact(async (tx) => {
      for (let i = 0; i < 3; i++) {
        await tx.run("select 1");
        advance(11_000);
      }
    });
    expect(timers.size).toBe(0);
  });

  test("a statement that the server ends for its length has written nothing", async () => {
    const { pool } = await open({ statementTimeoutMs: 50 });
    expect(await refusalOf(pool.write("select pg_sleep(60)"))).toBe("storage_unavailable");
  });

  test.each([
    ["53100", "storage_full"],
    ["53200", "storage_unavailable"],
    ["55P03", "storage_unavailable"],
    ["40001", "storage_unavailable"],
    ["58030", "storage_unavailable"],
    ["42501", "storage_unavailable"],
    ["XX001", "storage_damaged"],
    ["XX002", "storage_damaged"],
    ["57P01", "unknown"],
    ["25P04", "unknown"],
  ])("what the server refuses with %s is %s", async (state, code) => {
    const { pool } = await open();
    expect(await refusalOf(pool.write(failing(state)))).toBe(code);
  });

  test("a defect stays what it is", async () => {
    const { pool } = await open();
    expect(sqlStateOf(await refusalOf(pool.write("select 1/0")))).toBe("22012");
  });

  test("is told of every failure", async () => {
    const told: unknown[] = [];
    const { pool } = await open({ onFailure: (error) => told.push(sqlStateOf(error)) });
    await refusalOf(pool.write(failing("53100")));
    await refusalOf(pool.write(failing("40P01")));
    expect(told).toEqual(["53100", "40P01", "40P01", "40P01", "40P01"]);
  });

  test("what was in another's way is done again, whole", async () => {
    const { pool } = await open();
    await pool.write("create sequence tries");
    await pool.write("create table kept (a int)");
    await pool.transact(async (tx) => {
      await tx.run("insert into kept values (1)");
      const [row] = await tx.run<{ n: number }>("select nextval('tries')::int as n");
      if ((row?.n ?? 0) < 3) await tx.run(failing("40001"));
    });
    expect([...(await pool.read("select a, (select last_value::int from tries) as n from kept"))]).toEqual([
      { a: 1, n: 3 },
    ]);
  });

  test("a server that only reads is left, as the wrong one after a failover", async () => {
    const { pool, url, server } = await open();
    const name = new URL(url).pathname.slice(1);
    await administer(server, `alter database ${name} set default_transaction_read_only = on`);
    expect(await refusalOf(pool.write("create table kept (a int)"))).toBe("storage_unavailable");
    await administer(server, `alter database ${name} set default_transaction_read_only = off`);
    // The connections of before would go on to refuse.
    await pool.write("create table kept (a int)");
  });

  test("no connection left: nothing was written", async () => {
    const { url, server } = await open();
    const role = `role_${new URL(url).pathname.slice(1)}`;
    await administer(server, `create role ${role} login connection limit 1 password 'none'`);
    postgres.cleanUpFirst(() => administer(server, `drop role ${role}`).then(() => {}));
    const theirs = new URL(url);
    theirs.username = role;
    theirs.password = "none";
    const { pool: first } = await open({ url: theirs.href, size: 1 });
    await first.read("select 1");
    const { pool: second } = await open({ url: theirs.href, size: 1 });
    expect(await refusalOf(second.write("select 1"))).toBe("storage_unavailable");
    await first.close();
    await Promise.all([first, second].map((pool) => pool.close()));
  });

  test("a closed pool refuses, and whoever waits is told", async () => {
    const { pool } = await open();
    const waiting = refusalOf(pool.write("select pg_sleep(60), 'closing'"));
    await whenAtWork("select pg_sleep(60), 'closing'");
    await pool.close();
    expect(await waiting).toBe("unknown");
    expect(await refusalOf(pool.read("select 1"))).toBe("shutting_down");
  });

  test("a listener hears again after its connection was lost", async () => {
    const url = await postgres.database();
    const listener = createListener({ url, clock: systemClock, onFailure() {} });
    postgres.cleanUpFirst(() => listener.close());
    const server = await sharedServer();
    const name = new URL(url).pathname.slice(1);
    let listening = Promise.withResolvers<void>();
    let heard = Promise.withResolvers<string>();
    await listener.listen(
      "change",
      (payload) => heard.resolve(payload),
      () => listening.resolve(),
    );
    await listening.promise;
    await administer(server, "select pg_notify('change', 'one')", name);
    expect(await heard.promise).toBe("one");
    listening = Promise.withResolvers();
    heard = Promise.withResolvers();
    await administer(
      server,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
    );
    await listening.promise;
    await administer(server, "select pg_notify('change', 'two')", name);
    expect(await heard.promise).toBe("two");
  });

  test("a listener that cannot reach its database tells of each failure, and writes nothing to the console", async () => {
    const proxy = await createCuttingProxy(await postgres.database());
    postgres.cleanUpFirst(proxy.close);
    let listening = Promise.withResolvers<void>();
    let failed = Promise.withResolvers<unknown>();
    const listener = createListener({
      url: proxy.url,
      clock: createFastClock(100),
      onFailure: (error) => failed.resolve(error),
    });
    postgres.cleanUpFirst(() => listener.close());
    const heard: string[] = [];
    for (const channel of ["change", "wake"]) {
      await listener.listen(
        channel,
        (payload) => heard.push(payload),
        () => channel === "wake" && listening.resolve(),
      );
    }
    const warned = spyOn(console, "warn");
    listening = Promise.withResolvers();
    proxy.cutOff();
    for (const _ of ["first", "second"]) {
      expect(await failed.promise).toMatchObject({ code: expect.stringContaining("ERR_POSTGRES") });
      failed = Promise.withResolvers();
    }
    proxy.mend();
    await listening.promise;
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
    const pool = postgres.pool(proxy.url, { size: 1 });
    await pool.read("select pg_notify('change', 'heard once'), pg_notify('wake', 'and in order')");
    while (heard.length < 2) await Bun.sleep(5);
    expect(heard).toEqual(["heard once", "and in order"]);
  });

  test("a bigint arrives as text, and cast to float8 as a number", async () => {
    const { pool } = await open();
    const [row] = await pool.read("select 9007199254740991::bigint as whole, 9007199254740991::bigint::float8 as cast");
    expect(row).toEqual({ whole: "9007199254740991", cast: 9_007_199_254_740_991 });
  });

  test("arrays go as text, whatever is in them", async () => {
    const { pool } = await open();
    const texts = ["plain", "", 'a "quoted", {braced} \\ one', "null", null];
    const numbers = [1, -2, 9_007_199_254_740_991, null];
    const rows = await pool.read(
      "select text, number::float8 from unnest($1::text[], $2::bigint[]) as t(text, number)",
      [arrayText(texts), arrayText(numbers)],
    );
    expect([...rows]).toEqual(texts.map((text, i) => ({ text, number: numbers[i] ?? null })));
    expect(await pool.read("select unnest($1::int[])", [arrayText([])])).toHaveLength(0);
  });

  test("many byte strings go as one", async () => {
    const { pool } = await open();
    const list = [new Uint8Array([0, 1, 255]), new Uint8Array(), new TextEncoder().encode("plain")];
    const packed = packBytes(list);
    const rows = await pool.read<{ bytes: Uint8Array }>(
      "select substring($1::bytea from start for length) as bytes from unnest($2::int[], $3::int[]) as t(start, length)",
      [packed.bytes, packed.starts, packed.lengths],
    );
    expect(rows.map(({ bytes }) => new Uint8Array(bytes))).toEqual(list);
  });
});

describeWithOwnServer("a server that goes away", () => {
  let server: OwnServer | null = null;
  afterAll(() => server?.remove());

  test("is unavailable while it is away, and serves by itself when it is back", async () => {
    server = await startFastServer();
    const pool = createPool({ url: server.url("postgres"), size: 2, clock: systemClock });
    await pool.write("create table kept (a int)");
    const underWay = refusalOf(pool.write("select pg_sleep(60)"));
    const inTransaction = refusalOf(
      pool.transact(async (tx) => {
        await tx.run("insert into kept values (1)");
        await tx.run("select pg_sleep(60)");
      }),
    );
    await Bun.sleep(0);
    const until = performance.now() + patienceMs;
    const asleep = "select 1 from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'";
    while ((await administer(server, asleep)).length < 2 && performance.now() < until) await Bun.sleep(5);
    await server.stop("immediate");
    expect(await underWay).toBe("unknown");
    expect(await inTransaction).toBe("storage_unavailable");
    expect(await refusalOf(pool.write("insert into kept values (2)"))).toBe("storage_unavailable");
    await server.start();
    await pool.write("insert into kept values (3)");
    expect([...(await pool.read("select a from kept"))]).toEqual([{ a: 3 }]);
    await pool.close();
  });
});
