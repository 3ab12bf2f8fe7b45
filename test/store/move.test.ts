import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { moveToPostgres, moveToSqlite } from "../../src/store/move/move.ts";
import { tableNames } from "../../src/store/move/tables.ts";
import type { OpenedStore } from "../../src/store/opened.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { fill, masterKey, rowsOf, useFolders, vault } from "../support/filled-folder.ts";
import { describeWithPostgres, usePostgres } from "../support/postgres.ts";
import { readAll } from "../support/read-all.ts";
import { bytes, latestKey, newTenant, untyped } from "../support/store-factory.ts";

const newFolder = useFolders();

const tablesIn = (dataDir: string): string[] => {
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  const rows = client
    .query<{ name: string }, []>("select name from sqlite_schema where type = 'table' order by 1")
    .all();
  client.close();
  return rows.map(({ name }) => name).filter((name) => !name.startsWith("sqlite_"));
};

describe("the tables of a move", () => {
  test("are all that SQLite has, but for its own", async () => {
    const dataDir = newFolder();
    await openSqliteStore({ dataDir, clock: systemClock }).store.close();
    expect(tablesIn(dataDir).filter((name) => !tableNames.includes(name as never))).toEqual([
      "lane",
      "vault_check",
      "written_by",
    ]);
  });
});

describeWithPostgres("a move", () => {
  const postgres = usePostgres();
  const options = (dataDir: string, url: string) => ({
    ...{ dataDir, url, masterKey, clock: systemClock, durability: "waived" as const },
  });
  const schemaOf = async (url: string) => [
    ...(await postgres.pool(url).read(
      `select tablename, indexname, indexdef from pg_indexes where schemaname = 'public'
        and tablename !~ '_(default|[0-9]{4}_[0-9]{2})$' order by 1, 2`,
    )),
  ];
  const openThere = (url: string) => openPostgresStore({ url, clock: systemClock, vault, durability: "waived" });

  test("there and back leaves every row as it was", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const before = rowsOf(dataDir);
    expect(
      Object.entries(before)
        .filter(([, rows]) => rows.length === 0)
        .map(([name]) => name),
    ).toEqual([]);
    const url = await postgres.database();
    const there = await moveToPostgres(options(dataDir, url));
    expect(there).toMatchObject({ miscounted: [] });
    expect(there?.compared).toBe(there?.rows ?? -1);
    expect(await schemaOf(url)).toEqual(await schemaOf(await postgres.migrated()));
    const second = newFolder();
    await moveToSqlite(options(second, url));
    expect(rowsOf(second)).toEqual(before);
    expect(rowsOf(dataDir)).toEqual(before);
    expect(tablesIn(second)).not.toContain("move_mark");
  });

  /** Lets so many batches through, and then fails as a lost connection does. */
  const failing = (dataDir: string, url: string, after: number) => {
    let batches = 0;
    const onProgress = ({ step }: { step: string }) => {
      batches += 1;
      if (batches > after || step === "checking") throw new Error("killed");
    };
    return { ...options(dataDir, url), onProgress };
  };

  test("that ends in the middle goes on where it was, in both directions", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const before = rowsOf(dataDir);
    const url = await postgres.database();
    for (const after of [1, 5, 9, 22])
      await expect(moveToPostgres(failing(dataDir, url, after))).rejects.toThrow("killed");
    await expect(openThere(url)).rejects.toThrow(/has not ended. Try: run the same postrider move again/);
    const done: number[] = [];
    await moveToPostgres({ ...options(dataDir, url), onProgress: ({ done: rows }) => done.push(rows) });
    expect(done[0]).toBeGreaterThan(10);
    const second = newFolder();
    for (const after of [1, 7, 30]) await expect(moveToSqlite(failing(second, url, after))).rejects.toThrow("killed");
    expect(() => openSqliteStore({ dataDir: second, clock: systemClock })).toThrow(/has not ended/);
    await moveToSqlite(options(second, url));
    expect(rowsOf(second)).toEqual(before);
  });

  test("ends with a mark: no server starts on what was left, and there is no second one", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    await moveToPostgres(options(dataDir, url));
    const open = () => openSqliteStore({ dataDir, clock: systemClock });
    expect(open).toThrow(/was moved to PostgreSQL .*Try: set POSTRIDER_DATABASE_URL/);
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/was moved to PostgreSQL .* already/);
    const second = newFolder();
    await moveToSqlite(options(second, url));
    await expect(openThere(url)).rejects.toThrow(/was moved to \/.*POSTRIDER_DATA_DIR=/);
    const third = newFolder();
    await expect(moveToSqlite(options(third, url))).rejects.toThrow(/was moved to \/.* already/);
    expect(readdirSync(third)).toEqual([]);
    await openSqliteStore({ dataDir: second, clock: systemClock, vault }).store.close();
  });

  test("passes on secrets, also to a database that a server had begun to use", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    const begun = await openThere(url);
    expect(begun.keptSecrets).toEqual({});
    await begun.store.close();
    const movingSecrets = { session: "00ff" };
    // Replaced while the move was interrupted.
    const before = { session: "0011" };
    await expect(moveToPostgres({ ...failing(dataDir, url, 3), movingSecrets: before })).rejects.toThrow("killed");
    await moveToPostgres({ ...options(dataDir, url), movingSecrets });
    const there = await openThere(url);
    expect(there.keptSecrets).toEqual(movingSecrets);
    await there.store.close();
    const refused = newFolder();
    await fill(refused);
    await expect(moveToPostgres({ ...options(refused, url), movingSecrets: {} })).rejects.toThrow(/not of this move/);
    const still = await openThere(url);
    expect(still.keptSecrets).toEqual(movingSecrets);
    await still.store.close();
  });

  test("can be made again when its target is lost, to an empty place", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const before = rowsOf(dataDir);
    const rehearsed = await postgres.database();
    await moveToPostgres(options(dataDir, rehearsed));
    const again = (to: string) => ({ ...options(dataDir, to), again: true });
    await expect(moveToPostgres(again(rehearsed))).rejects.toThrow(/not of this move. Try: name an empty place/);
    const url = await postgres.database();
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/already. Try: .* add --again/);
    await expect(moveToPostgres({ ...failing(dataDir, url, 3), again: true })).rejects.toThrow("killed");
    expect(() => openSqliteStore({ dataDir, clock: systemClock })).toThrow(/was moved to PostgreSQL/);
    await moveToPostgres(options(dataDir, url));
    const lost = newFolder();
    await moveToSqlite(options(lost, url));
    const second = newFolder();
    await expect(moveToSqlite(options(second, url))).rejects.toThrow(/already. Try: .* add --again/);
    await moveToSqlite({ ...options(second, url), again: true });
    expect(rowsOf(second)).toEqual(before);
  });

  test("leaves a server that does not begin with nothing elsewhere", async () => {
    const movedTo = "PostgreSQL db/postrider";
    const open = (url: string) => openPostgresStore({ url, clock: systemClock, vault, durability: "waived", movedTo });
    const empty = await postgres.database();
    for (const _ of ["first", "second"])
      await expect(open(empty)).rejects.toThrow(
        /was moved to PostgreSQL db\/postrider, but .* is empty.* Try: correct/,
      );
    const { store } = await open(await postgres.migrated());
    await store.close();
  });

  test("is given up by a server that starts on the source", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    await expect(moveToPostgres(failing(dataDir, url, 3))).rejects.toThrow("killed");
    await openSqliteStore({ dataDir, clock: systemClock, vault }).store.close();
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/not of this move. Try: name an empty place/);
  });

  test("wants a place of its own, and no server beside it", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    const pool = postgres.pool(url);
    await pool.write("create table theirs (a int)");
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/tables of another program \(theirs\). Try: /);
    await pool.write("drop table theirs");
    const { store } = await openThere(url);
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/Servers are using .* Try: stop them all/);
    await expect(moveToSqlite(options(newFolder(), url))).rejects.toThrow(/Servers are using .* Try: stop them all/);
    await store.createTenant(newTenant(), 1);
    await store.close();
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/not of this move. Try: name an empty place/);
    await expect(moveToPostgres(options(newFolder(), url))).rejects.toThrow(/There is no database in/);
    const other = new Uint8Array(32).fill(8);
    await expect(moveToPostgres({ ...options(dataDir, url), masterKey: other })).rejects.toThrow(
      /master key is not the one/,
    );
  });

  test("from PostgreSQL brings an account that has had no event yet, and counts its first ones", async () => {
    const url = await postgres.migrated();
    const there = await openThere(url);
    const quiet = await there.store.createTenant(newTenant({ urls: ["https://a.example/hook"] }), 1);
    await there.store.close();
    const dataDir = newFolder();
    // Also one that is killed just before its end.
    await expect(moveToSqlite(failing(dataDir, url, 100))).rejects.toThrow("killed");
    expect(await moveToSqlite(options(dataDir, url))).toMatchObject({ miscounted: [] });
    // Before any server has started on it.
    const client = new Database(join(dataDir, databaseFile), { readonly: true });
    expect(client.query("select tenant_key as key, events from tenant_usage").all()).toEqual([
      { key: quiet.key, events: 0 },
    ]);
    client.close(true);

    const { store } = openSqliteStore({ dataDir, clock: systemClock, vault });
    const events = [untyped(bytes("{}")), untyped(bytes("{}"))];
    await store.acceptEvents({ tenantKey: quiet.key, apiKeyId: await latestKey(store, quiet.key), events });
    const { records, total } = await store.page({ tenantKey: quiet.key, page: 0, size: 10 });
    expect([total, (await readAll(records)).length]).toEqual([2, 2]);
    expect(await store.usage(quiet.key, systemClock.now())).toEqual({ eventsThisMonth: 2 });
    expect(await store.storedEvents()).toBe(2);
    expect((await store.queueDepth()).pending).toBe(2);
    await store.close();
  });

  test("shows an account there as it was here", async () => {
    const dataDir = newFolder();
    const { tenant, eventIds } = await fill(dataDir);
    const view = async ({ store }: OpenedStore) => ({
      page: await readAll((await store.page({ tenantKey: tenant.key, page: 0, size: 1000 })).records),
      attempts: await Promise.all(
        eventIds.map(async (id) => {
          const found = await store.attempts(tenant.key, id, { offset: 0, limit: 100 });
          return found && readAll(found.attempts);
        }),
      ),
      replays: await readAll((await store.replays(tenant.key, { offset: 0, limit: 100 })).replays),
      health: await store.webhookHealth(tenant.key, { records: 100, walked: 1000 }),
      usage: await store.usage(tenant.key, 40 * 86_400_000),
      webhooks: await store.webhooks(tenant.key),
      secrets: await store.signingSecrets(tenant.key, 1),
    });
    const clock = createFakeClock();
    const here = openSqliteStore({ dataDir, clock, vault });
    const before = await view(here);
    await here.store.close();
    const url = await postgres.database();
    await moveToPostgres(options(dataDir, url));
    const there = await openPostgresStore({ url, clock, vault, durability: "waived" });
    postgres.cleanUpFirst(() => there.store.close());
    expect(await view(there)).toEqual(before);
    // What comes next takes keys that nobody has.
    const made = await there.store.createTenant(newTenant(), 1);
    expect(made.key).toBeGreaterThan(tenant.key + 3);
  });
});
