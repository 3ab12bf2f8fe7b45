import { expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { sqlStateOf } from "../../../src/store/postgres/faults.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { administer, sharedServer } from "../../support/postgres-server.ts";
import { bytes, newTenant, refusalOf, untyped } from "../../support/store-factory.ts";

describeWithPostgres("a node whose database has no connection left", () => {
  const postgres = usePostgres();

  /** A database whose user has a limit of connections; a superuser has none. */
  async function limitedDatabase() {
    const server = await sharedServer();
    const url = new URL(await postgres.database());
    const admin = postgres.pool(url.href, { size: 1 });
    const database = url.pathname.slice(1);
    const user = `clerk_${database}`;
    await administer(server, `create role ${user} login`);
    await administer(server, `alter database ${database} owner to ${user}`);
    postgres.cleanUpFirst(async () => {
      await administer(server, `reassign owned by ${user} to current_user`, database);
      await administer(server, `drop role ${user}`);
    });
    url.username = user;
    const limitTo = (most: number) => administer(server, `alter role ${user} connection limit ${most}`);
    return { url: url.href, user, admin, limitTo };
  }

  async function openNode() {
    const { url, user, admin, limitTo } = await limitedDatabase();
    const { store } = await openPostgresStore({ url, clock: systemClock, durability: "waived" });
    postgres.cleanUpFirst(() => store.close());
    const made = newTenant();
    const { key: tenantKey } = await store.createTenant(made, systemClock.now());
    const accept = () =>
      store.acceptEvents({
        ...{ tenantKey, apiKeyId: made.apiKey.id },
        ...{ events: [untyped(bytes("{}"))], roomFor: () => 0 },
      });
    /** Ends the connection that accepts events, which is known by its last statement. */
    const cutLane = () =>
      admin.read(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity
          where usename = $1 and query like '%update lane set batch%'`,
        [user],
      );
    return { store, accept, cutLane, limitTo };
  }

  test("accepts events on the connections that it has had since its start", async () => {
    const { accept, limitTo } = await openNode();
    await limitTo(0);
    expect(await accept()).toMatchObject({ eventIds: [expect.any(String)] });
  });

  test("is not ready when it is the connection for events that it lacks, says why, and is ready again once it has one", async () => {
    const { store, accept, cutLane, limitTo } = await openNode();
    await store.probe();
    await accept();
    await limitTo(0);
    expect(await cutLane()).toHaveLength(1);
    const said = /^The database has no connection free at the moment; retry later\.$/;
    await refusalOf(store.probe());
    await expect(store.probe()).rejects.toThrow(said);
    await expect(accept()).rejects.toThrow(said);
    await limitTo(-1);
    await store.probe();
    await accept();
  });

  test.each([2, 4])("says at the start, with %i connections, what it waits for, and what to do", async (most) => {
    const { url, limitTo } = await limitedDatabase();
    await limitTo(most);
    const told: unknown[] = [];
    // Once it waits, half a minute passes.
    const monotonicMs = () => systemClock.monotonicMs() + (told.length > 0 ? 30_000 : 0);
    const opening = openPostgresStore({
      ...{ url, clock: systemClock, machineClock: { ...systemClock, monotonicMs }, durability: "waived" },
      onFailure: ({ error }) => void told.push(sqlStateOf(error)),
    });
    await expect(opening).rejects.toThrow(/^After 30 s, the database at .* still has no connection left .*Try: raise/);
    expect(told[0]).toBe("53300");
  });

  test("that has joined ends its start at once when it is asked to, and leaves", async () => {
    const { url, admin, limitTo } = await limitedDatabase();
    // Enough to join, whatever it has opened by then, and too few for its lanes and its listener.
    await limitTo(5);
    const asked = new AbortController();
    let hasJoined = false;
    const opening = openPostgresStore({
      ...{ url, clock: systemClock, durability: "waived", signal: asked.signal },
      noteNode() {
        hasJoined = true;
      },
      // Before, it may lack a connection that an earlier step is still giving back.
      onFailure() {
        if (hasJoined) asked.abort();
      },
    });
    expect(await refusalOf(opening)).toBe("unavailable shutting_down");
    expect(await admin.read("select name from node")).toEqual([]);
  });
});
