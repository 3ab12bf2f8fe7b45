import { expect, test } from "bun:test";
import type { Change } from "../../../src/domain/change.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { type Changes, createChanges } from "../../../src/store/postgres/changes.ts";
import { join, leaseMs, type Node, retire } from "../../../src/store/postgres/nodes.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { newApiKeyRow, newTenant } from "../../support/store-factory.ts";
import { description, expire } from "./event-lane.ts";

describeWithPostgres("a change", () => {
  const postgres = usePostgres();

  /** A whole node, with what its program is told. */
  async function openNode(url: string) {
    const { store } = await openPostgresStore({ url, clock: createFakeClock(), durability: "waived" });
    postgres.cleanUpFirst(() => store.close());
    const told: string[] = [];
    store.onChange((change) => void told.push(change.kind));
    return { store, told };
  }

  test("made on one node is told on the other before its verb is answered there", async () => {
    const url = await postgres.migrated();
    const [here, there] = [await openNode(url), await openNode(url)];
    const { key } = await here.store.createTenant(newTenant({ tier: "free" }), 1);
    for (const [i, act] of [
      () => here.store.setTier(key, "pro"),
      () => there.store.suspend(key, "operator", 1),
      () => here.store.setPassword(key, "new"),
      () => there.store.endSession("s1", 1),
      () => here.store.deleteTenant(key, 1),
    ].entries()) {
      await act();
      expect([here.told.length, there.told.length]).toEqual([i + 1, i + 1]);
    }
    expect(there.told).toEqual([
      "plan_changed",
      "account_suspended",
      "sessions_ended",
      "session_ended",
      "account_deleted",
    ]);
    expect(here.told).toEqual(there.told);
  });

  test("is seen on the other node by whoever comes with an API key, as soon as it is answered", async () => {
    const url = await postgres.migrated();
    const [here, there] = [await openNode(url), await openNode(url)];
    const [first, second] = [newApiKeyRow(), newApiKeyRow()];
    const { key } = await here.store.createTenant(newTenant({ apiKey: first }), 1);
    expect(await there.store.findApiKey(first.hash)).toMatchObject({ expiresAt: null, tenant: { tier: "enterprise" } });
    await here.store.rotateApiKey(key, second, 2_000, 1_000);
    expect(await there.store.findApiKey(first.hash)).toMatchObject({ expiresAt: 2_000 });
    await here.store.setTier(key, "free");
    expect(await there.store.findApiKey(second.hash)).toMatchObject({ tenant: { tier: "free" } });
    await here.store.setLimits(key, { ownWebhooks: 5 });
    expect(await there.store.findApiKey(second.hash)).toMatchObject({ tenant: { ownWebhooks: 5 } });
    await here.store.deleteTenant(key, 1);
    expect(await there.store.findApiKey(second.hash)).toBeNull();
  });

  test("is one of many, made on both at once, that both are told of in the same order", async () => {
    const url = await postgres.migrated();
    const nodes = [await openNode(url), await openNode(url)];
    const orders: string[][] = nodes.map(({ store }) => {
      const order: string[] = [];
      store.onChange((change) => order.push("sessionId" in change ? change.sessionId : change.kind));
      return order;
    });
    const ids = Array.from({ length: 40 }, (_, i) => `s${i}`);
    await Promise.all(ids.map((id, i) => nodes[i % 2]?.store.endSession(id, 1)));
    expect(orders[0]?.toSorted()).toEqual(ids.toSorted());
    expect(orders[1]).toEqual(orders[0] ?? []);
  });

  /** A node of which only this is there, and which hears nothing by itself. */
  async function bareNode(pool: Pool, clock = systemClock) {
    const heeded: string[] = [];
    const gone: number[] = [];
    let node: Node | null = null;
    const changes = createChanges({
      pool,
      clock,
      node: () => node,
      async heed(made) {
        heeded.push(...made.map((change) => ("sessionId" in change ? change.sessionId : change.kind)));
      },
      onGoneBack: (incarnation) => void gone.push(incarnation),
      onFailure() {},
    });
    await changes.catchUp();
    node = await join(pool, description);
    if (!node) throw new Error("No slot is free");
    return { changes, node, heeded, gone };
  }

  const ended = (sessionId: string): Change => ({ kind: "session_ended", sessionId });

  const make = (pool: Pool, changes: Changes, ...made: Change[]) => pool.transact((tx) => changes.write(tx, made));

  /** @returns whether it is answered by now */
  function watch(passed: Promise<void>): () => boolean {
    let isAnswered = false;
    void passed.then(() => {
      isAnswered = true;
    });
    return () => isAnswered;
  }

  test("waits for a node that has missed the notification, until that catches up", async () => {
    const pool = postgres.pool(await postgres.migrated(), { size: 4 });
    const time = createManualClock();
    const [here, there] = [await bareNode(pool, time.clock), await bareNode(pool)];
    const number = await make(pool, here.changes, ended("s1"), ended("s2"));
    const paused = time.whenSet(2);
    const passed = here.changes.passed(number);
    const isAnswered = watch(passed);
    await paused;
    const pausedAgain = time.whenSet(4);
    time.advance(2);
    await pausedAgain;
    expect([isAnswered(), here.heeded, there.heeded]).toEqual([false, ["s1", "s2"], []]);
    await there.changes.catchUp();
    const rows = await pool.read<{ heeded: number }>("select heeded::int as heeded from node order by slot");
    expect(rows.map(({ heeded }) => heeded)).toEqual([2, 2]);
    time.advance(4);
    await passed;
    expect(there.heeded).toEqual(["s1", "s2"]);
  });

  test("waits for a lease at most, whatever a node does not note", async () => {
    const pool = postgres.pool(await postgres.migrated(), { size: 4 });
    const time = createManualClock();
    const [here, there] = [await bareNode(pool, time.clock), await bareNode(pool)];
    const paused = time.whenSet(2);
    const passed = here.changes.passed(await make(pool, here.changes, ended("s1")));
    const isAnswered = watch(passed);
    await paused;
    const pausedAgain = time.whenSet(4);
    time.advance(leaseMs - 1);
    await pausedAgain;
    expect(isAnswered()).toBe(false);
    time.advance(4);
    await passed;
    expect(there.heeded).toEqual([]);
  });

  test("does not wait for a node whose lease has run out", async () => {
    const pool = postgres.pool(await postgres.migrated(), { size: 4 });
    const [here, there] = [await bareNode(pool, createManualClock().clock), await bareNode(pool)];
    await expire(pool, there.node);
    await here.changes.passed(await make(pool, here.changes, ended("s1")));
    expect([here.heeded, there.heeded]).toEqual([["s1"], []]);
  });

  test("from before a node began is no news to it; one from while it was gone is", async () => {
    const pool = postgres.pool(await postgres.migrated(), { size: 4 });
    const here = await bareNode(pool);
    await make(pool, here.changes, ended("before"));
    const there = await bareNode(pool);
    await retire(pool, there.node.incarnation);
    await here.changes.passed(await make(pool, here.changes, ended("meanwhile")));
    await there.changes.catchUp();
    expect([here.heeded, there.heeded]).toEqual([["before", "meanwhile"], ["meanwhile"]]);
  });

  /** As after a failover to a standby that had only the first changes and notes. */
  const goBack = async (pool: Pool, to: number): Promise<void> => {
    await pool.write("delete from change where number > $1::bigint", [to]);
    await pool.write("update change_head set last = $1::bigint", [to]);
    await pool.write("update node set heeded = least(heeded, $1::bigint)", [to]);
  };

  test.each([
    ["are missed by nobody", 0],
    ["are missed by nobody, even if others have taken their numbers meanwhile", 2],
  ])("whose database has gone back to before them %s", async (_, meanwhile) => {
    const pool = postgres.pool(await postgres.migrated(), { size: 4 });
    const here = await bareNode(pool);
    await make(pool, here.changes, ended("kept"));
    await here.changes.catchUp();
    await make(pool, here.changes, ended("lost"), ended("lost, too"));
    await here.changes.catchUp();
    await goBack(pool, 1);
    for (let made = 0; made < meanwhile; made++) await make(pool, here.changes, ended("meanwhile"));
    await here.changes.catchUp();
    expect(here.gone).toEqual([here.node.incarnation]);
    await make(pool, here.changes, ended("after"));
    await here.changes.catchUp();
    expect(here.heeded).toEqual(["kept", "lost", "lost, too", "after"]);
  });

  test("is told and answered though every connection that hears of it was lost", async () => {
    const url = await postgres.migrated();
    const [here, there] = [await openNode(url), await openNode(url)];
    await postgres
      .pool(url)
      .read(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = $1",
        ["postrider listener"],
      );
    await here.store.endSession("s1", 1);
    expect([here.told, there.told]).toEqual([["session_ended"], ["session_ended"]]);
  });
});
