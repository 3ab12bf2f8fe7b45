import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { cpSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { examineDatabase } from "../../../src/store/sqlite/examine.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { readAll } from "../../support/read-all.ts";
import { mountSmallDisk } from "../../support/small-disk.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { latestKey, newTenant, refusalOf, untyped } from "../../support/store-factory.ts";

const sqlite = useSqlite();

const url = "https://a.example";

/** Holds a database, but not what is put off. */
const smallDisk = mountSmallDisk(32);
afterAll(() => smallDisk?.unmount());

describe("a fresh record", () => {
  /** With two accounts, and what tells which events of theirs are in no list. */
  async function openWithTwo(options: { dataDir?: string } = {}) {
    const clock = createFakeClock();
    let failing = false;
    const { store, path } = await sqlite.store({
      ...options,
      clock,
      commit(commit) {
        if (failing) throw Object.assign(new Error("full"), { code: "SQLITE_FULL" });
        commit();
      },
    });
    const [one, other] = [
      await store.createTenant(newTenant({ urls: [url] }), 1),
      await store.createTenant(newTenant({ urls: [url] }), 1),
    ];
    const looking = new Database(path, { readonly: true });
    sqlite.cleanUpFirst(() => looking.close());
    const unfiled = () =>
      looking
        .query<{ tenantKey: number }, []>("select tenant_key as tenantKey from delivery where filed = 0 order by key")
        .all()
        .map(({ tenantKey }) => tenantKey);
    const accept = async (tenant: typeof one, count = 1) => {
      const events = Array.from({ length: count }, () => untyped(new TextEncoder().encode("{}")));
      return store.acceptEvents({ tenantKey: tenant.key, apiKeyId: await latestKey(store, tenant.key), events });
    };
    const pageOf = async ({ key }: typeof one) =>
      (await readAll((await store.page({ tenantKey: key, page: 0, size: 10 })).records)).length;
    /** The one before has ended, and the time of this one is set. */
    const nextLook = async () => {
      while (clock.timers === 0) await new Promise(setImmediate);
    };
    return {
      clock,
      nextLook,
      store,
      path,
      one,
      other,
      unfiled,
      accept,
      pageOf,
      fail: (now: boolean) => (failing = now),
    };
  }

  test("is filed with all the others once it was there at two looks, and then nothing is left to do", async () => {
    const { clock, nextLook, one, other, unfiled, accept, store } = await openWithTwo();
    const look = async () => {
      await nextLook();
      clock.advance(250);
      await store.probe();
    };
    await accept(one);
    await accept(other);
    await accept(one);
    await look();
    expect(unfiled()).toEqual([one.key, other.key, one.key]);
    await accept(other);
    await look();
    expect(unfiled()).toEqual([other.key]);
    await look();
    expect(unfiled()).toEqual([]);
    await store.probe();
    expect(clock.timers).toBe(0);
  });

  test("of a batch is filed as it is accepted", async () => {
    const { one, other, unfiled, accept } = await openWithTwo();
    await accept(one, 20);
    expect(unfiled()).toEqual([]);
    await accept(other, 19);
    expect(unfiled()).toHaveLength(19);
  });

  test.skipIf(smallDisk === null)(
    "is filed as it is accepted where the database's disk has no room to spare",
    async () => {
      const dataDir = sqlite.emptyDir();
      symlinkSync(join(smallDisk?.folder ?? "", databaseFile), join(dataDir, databaseFile));
      const { one, unfiled, accept } = await openWithTwo({ dataDir });
      await accept(one);
      expect(unfiled()).toEqual([]);
    },
  );

  test("is filed at once for whoever reads a list of its account, and no other is", async () => {
    const { one, other, unfiled, accept, pageOf } = await openWithTwo();
    await accept(one);
    await accept(other);
    expect(await pageOf(one)).toBe(1);
    expect(unfiled()).toEqual([other.key]);
    expect(await pageOf(other)).toBe(1);
  });

  test("that cannot be filed is listed as soon as it can; what was is there meanwhile", async () => {
    const { clock, nextLook, one, accept, pageOf, fail, unfiled, store } = await openWithTwo();
    await accept(one);
    expect(await pageOf(one)).toBe(1);
    await accept(one);
    fail(true);
    expect(await pageOf(one)).toBe(1);
    for (let looks = 0; looks < 2; looks++) {
      await nextLook();
      clock.advance(250);
      expect(await refusalOf(store.probe())).toStartWith("unavailable");
    }
    fail(false);
    await nextLook();
    clock.advance(1_000);
    await store.probe();
    expect(unfiled()).toEqual([]);
    expect(await pageOf(one)).toBe(2);
  });

  test("goes with its account, although it is in no list", async () => {
    const { store, path, one, accept, unfiled } = await openWithTwo();
    await accept(one);
    await store.deleteTenant(one.key, 1);
    expect(unfiled()).toEqual([one.key]);
    while (await store.eraseDeleted(100));
    expect(unfiled()).toEqual([]);
    const looking = new Database(path, { readonly: true });
    expect(looking.query("select count(*) as events from event").get()).toEqual({ events: 0 });
    looking.close();
  });

  test("that a killed server has left is filed by the next one, and by whoever examines the database", async () => {
    const { clock, path, one, accept, unfiled } = await openWithTwo();
    await accept(one);
    expect(unfiled()).toEqual([one.key]);
    const left = sqlite.emptyDir();
    cpSync(dirname(path), left, { recursive: true });
    const examined = sqlite.emptyDir();
    cpSync(left, examined, { recursive: true });

    const { store } = openSqliteStore({ dataDir: left, clock });
    sqlite.cleanUpFirst(() => store.close());
    const { records } = await store.page({ tenantKey: one.key, page: 0, size: 10 });
    expect(await readAll(records)).toHaveLength(1);
    expect(examineDatabase(examined).faults).toEqual([]);
  });

  test("that a killed server has left is filed even if everything before it had been erased", async () => {
    const { clock, nextLook, path, store, one, other, accept } = await openWithTwo();
    for (let n = 0; n < 3; n++) await accept(one);
    for (let looks = 0; looks < 2; looks++) {
      await nextLook();
      clock.advance(250);
      await store.probe();
    }
    await store.deleteTenant(one.key, 1);
    while (await store.eraseDeleted(100));
    await store.close();

    const restarted = openSqliteStore({ dataDir: dirname(path), clock });
    sqlite.cleanUpFirst(() => restarted.store.close());
    const apiKeyId = await latestKey(restarted.store, other.key);
    const events = [untyped(new TextEncoder().encode("{}"))];
    await restarted.store.acceptEvents({ tenantKey: other.key, apiKeyId, events });
    const left = sqlite.emptyDir();
    cpSync(dirname(path), left, { recursive: true });

    const { store: next } = openSqliteStore({ dataDir: left, clock });
    sqlite.cleanUpFirst(() => next.close());
    const { records } = await next.page({ tenantKey: other.key, page: 0, size: 10 });
    expect(await readAll(records)).toHaveLength(1);
  });

  describe("of a batch, which a start need not look for,", () => {
    const marks = (path: string) => {
      const looking = new Database(path, { readonly: true });
      const found = looking
        .query<{ batch: number; filedTo: number; newest: number }, []>(
          "select batch, filed_to as filedTo, (select max(key) from delivery) as newest from lane",
        )
        .get();
      looking.close();
      if (!found) throw new Error("There is no lane");
      return found;
    };

    test("is behind the mark once its server has ended, and one that gets nothing writes nothing", async () => {
      const { clock, store, path, one, accept } = await openWithTwo();
      await accept(one, 20);
      await store.close();
      const ended = marks(path);
      expect(ended).toMatchObject({ filedTo: 20, newest: 20 });
      await openSqliteStore({ dataDir: dirname(path), clock }).store.close();
      expect(marks(path)).toEqual(ended);
    });

    test("is behind the mark while its server runs, up to the latest", async () => {
      const { clock, path, one, accept } = await openWithTwo();
      for (let i = 0; i < 12; i++) await accept(one, 1_000);
      const { filedTo, newest } = marks(path);
      expect(newest).toBe(12_000);
      expect(filedTo).toBe(10_000);
      expect(clock.timers).toBe(0);
    });

    test("is behind the mark only if nothing that waits came before it", async () => {
      const { path, one, other, accept, pageOf } = await openWithTwo();
      await accept(other);
      for (let i = 0; i < 12; i++) await accept(one, 1_000);
      expect(marks(path).filedTo).toBe(0);
      await pageOf(other);
      await accept(one, 20);
      expect(marks(path)).toMatchObject({ filedTo: 12_021, newest: 12_021 });
    });

    test("is not behind the mark if its transaction was undone", async () => {
      const { store, path, one, accept, fail } = await openWithTwo();
      for (let i = 0; i < 9; i++) await accept(one, 1_000);
      fail(true);
      expect(await refusalOf(accept(one, 1_000))).toStartWith("unavailable");
      fail(false);
      expect(marks(path).filedTo).toBe(0);
      await accept(one, 20);
      const { filedTo, newest } = marks(path);
      expect(filedTo).toBe(newest);
      await store.close();
    });
  });
});
