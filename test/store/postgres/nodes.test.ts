import { expect, test } from "bun:test";
import type { EndedNode } from "../../../src/store/node-lease.ts";
import { createMembership, type MembershipOptions } from "../../../src/store/postgres/membership.ts";
import { beat, hasExpired, join, type Node, rescueExpired, retire } from "../../../src/store/postgres/nodes.ts";
import { arrayText } from "../../../src/store/postgres/parameters.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { accept, acceptText, description, expire, markOf, queueOf, whenWaiting } from "./event-lane.ts";

describeWithPostgres("nodes", () => {
  const postgres = usePostgres();
  const open = async (size = 4) => postgres.pool(await postgres.migrated(), { size });
  /** As when all were taken for dead. */
  const leave = async (pool: Pool): Promise<void> => {
    for (const { incarnation } of await pool.read<{ incarnation: number }>("select incarnation from node")) {
      await retire(pool, incarnation);
    }
  };
  const joined = async (pool: Pool): Promise<Node> => {
    const node = await join(pool, description);
    if (!node) throw new Error("No slot is free");
    return node;
  };

  test("that join at once hold each a slot of its own, until none is left", async () => {
    const pool = await open(8);
    const nodes = await Promise.all(Array.from({ length: 40 }, () => join(pool, description)));
    const held = nodes.filter((node) => node !== null);
    expect(held.map(({ slot }) => slot).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 32 }, (_, i) => i));
    expect(new Set(held.map(({ incarnation }) => incarnation)).size).toBe(32);
    const lanes = held.flatMap((node) => node.lanes.map(({ slot }) => slot));
    expect(lanes.every((slot, i) => Math.floor(slot / 4) === held[Math.floor(i / 2)]?.slot)).toBe(true);
    expect(new Set(lanes).size).toBe(64);
  });

  test("take the lowest slot that is free, under a number that nobody had", async () => {
    const pool = await open();
    const [first, second] = [await joined(pool), await joined(pool)];
    await retire(pool, first.incarnation);
    const third = await joined(pool);
    expect([first.slot, second.slot, third.slot]).toEqual([0, 1, 0]);
    expect(third.incarnation).toBeGreaterThan(second.incarnation);
  });

  test("go on with the numbers of the lanes that they take over", async () => {
    const pool = await open();
    const first = await joined(pool);
    const { slot } = markOf(first);
    await accept(pool, [1], [slot, first.incarnation, 1]);
    await retire(pool, first.incarnation);
    expect((await joined(pool)).lanes).toEqual([
      { slot, batch: 1 },
      { slot: slot + 1, batch: 0 },
    ]);
  });

  test("that beat are not rescued, and those whose lease has run out are", async () => {
    const pool = await open();
    const [living, dead] = [await joined(pool), await joined(pool)];
    await expire(pool, dead);
    expect(await beat(pool, living, description.listener)).not.toBeNull();
    expect(await rescueExpired(pool)).toEqual([
      { incarnation: dead.incarnation, name: description.name, deliveries: 0 },
    ]);
    expect(await rescueExpired(pool)).toEqual([]);
    expect(await beat(pool, living, description.listener)).not.toBeNull();
    expect(await beat(pool, dead, description.listener)).toBeNull();
  });

  test("hear at each heartbeat who lives, and what time it is there", async () => {
    const pool = await open();
    const [one, other, dead] = [await joined(pool), await joined(pool), await joined(pool)];
    await expire(pool, dead);
    const heard = await beat(pool, one, description.listener);
    const { name, listener } = description;
    expect(heard?.living).toEqual([one, other].map(({ slot, incarnation }) => ({ slot, incarnation, name, listener })));
    const [after] = await pool.read<{ now: number }>(
      "select (extract(epoch from clock_timestamp()) * 1000)::float8 as now",
    );
    expect(heard?.now).toBeLessThanOrEqual(after?.now ?? 0);
  });

  test("that have not heeded what others changed do not count a heartbeat", async () => {
    const pool = await open();
    let heed = async () => {};
    const { membership, time, whenFailed } = await member(pool, { heed: () => heed() });
    heed = () => Promise.reject(new Error("not yet"));
    for (let beats = 0; beats < 3; beats++) {
      const failed = whenFailed();
      time.advance(3_000);
      await failed;
    }
    expect([membership.mayStart(), membership.mayTrust()]).toEqual([false, true]);
    time.advance(11_000);
    expect(membership.mayTrust()).toBe(false);
  });

  test("that have not heeded what others changed while they were gone have not joined", async () => {
    const pool = await open();
    const heeded = Promise.withResolvers<void>();
    let heed = async () => {};
    const { membership, node, time, whenJoined } = await member(pool, { heed: () => heed() });
    const asked = new Promise<void>((resolve) => {
      heed = () => {
        resolve();
        return heeded.promise;
      };
    });
    await retire(pool, node.incarnation);
    time.advance(3_000);
    await asked;
    expect([membership.current(), membership.mayTrust()]).toEqual([null, false]);
    heeded.resolve();
    const next = await whenJoined();
    expect([membership.current(), membership.mayTrust()]).toEqual([next, true]);
  });

  test.each([
    ["keep it", "kept", (_pool: Pool) => {}],
    ["take another one if it was taken for dead meanwhile", "another", (pool: Pool) => leave(pool)],
  ])("that have a place, but cannot heed yet, %s", async (_, which, meanwhile) => {
    const pool = await open();
    let heed = async () => {};
    const { membership, node, time, whenFailed, whenJoined } = await member(pool, { heed: () => heed() });
    const places = () => pool.read<{ incarnation: number }>("select incarnation from node");
    heed = () => Promise.reject(new Error("not yet"));
    await retire(pool, node.incarnation);
    let tried = whenFailed();
    time.advance(3_000);
    await tried;
    const [taken] = await places();
    await meanwhile(pool);
    for (let tries = 0; tries < 3; tries++) {
      tried = whenFailed();
      time.advance(1_000);
      await tried;
    }
    expect(await places()).toHaveLength(1);
    heed = async () => {};
    time.advance(1_000);
    expect((await whenJoined()).incarnation === taken?.incarnation).toBe(which === "kept");
    expect(await places()).toEqual([{ incarnation: membership.current()?.incarnation ?? 0 }]);
  });

  test("that stop before they have heeded give their place back", async () => {
    const pool = await open();
    let heed = async () => {};
    const { membership, node, time, whenFailed } = await member(pool, { heed: () => heed() });
    heed = () => Promise.reject(new Error("not yet"));
    await retire(pool, node.incarnation);
    const tried = whenFailed();
    time.advance(3_000);
    await tried;
    const stopped = membership.stop();
    time.advance(1_000);
    await stopped;
    expect(await pool.read("select 1 from node")).toEqual([]);
  });

  test("that are late, and were not missed, go on", async () => {
    const pool = await open();
    const node = await joined(pool);
    await expire(pool, node);
    expect(await beat(pool, node, description.listener)).not.toBeNull();
    expect(await rescueExpired(pool)).toEqual([]);
  });

  test("leave what they owned to whoever claims it, and their late statements do nothing", async () => {
    const pool = await open();
    const [living, dead] = [await joined(pool), await joined(pool)];
    await accept(pool, [1, 2], [markOf(dead).slot, dead.incarnation, 1]);
    await accept(pool, [3], [markOf(living).slot, living.incarnation, 1]);
    await expire(pool, dead);
    expect(await rescueExpired(pool)).toMatchObject([{ incarnation: dead.incarnation, deliveries: 2 }]);
    expect(await accept(pool, [4], [markOf(dead).slot, dead.incarnation, 2])).toEqual([]);
    expect(await accept(pool, [5], [markOf(dead, 1).slot, dead.incarnation, 1])).toEqual([]);
    expect(await queueOf(pool)).toEqual([
      { seq: 1, owner: null },
      { seq: 2, owner: null },
      { seq: 3, owner: living.incarnation },
    ]);
  });

  test("are rescued by one of many who look at once", async () => {
    const pool = await open(6);
    const dead = await joined(pool);
    await expire(pool, dead);
    const rescued = await Promise.all(Array.from({ length: 6 }, () => rescueExpired(pool)));
    expect(rescued.flat()).toMatchObject([{ incarnation: dead.incarnation }]);
  });

  /** An accept that has written and not committed when the rescue begins, and commits while that waits for it. */
  async function lateAccept(rescue: (pool: Pool) => Promise<unknown>) {
    const pool = await open();
    const dead = await joined(pool);
    await expire(pool, dead);
    const written = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const late = pool.transact(async (tx) => {
      await tx.run(acceptText, [markOf(dead).slot, dead.incarnation, 1, arrayText([1])]);
      written.resolve();
      await mayCommit.promise;
    });
    await written.promise;
    const rescued = rescue(pool);
    await whenWaiting(pool, 1);
    mayCommit.resolve();
    await Promise.all([late, rescued]);
    return { owners: (await queueOf(pool)).map(({ owner }) => owner), dead };
  }

  test("that commit while they are rescued leave no orphan", async () => {
    expect((await lateAccept(rescueExpired)).owners).toEqual([null]);
  });

  test("would leave one if they were rescued in one statement", async () => {
    const inOne = (pool: Pool) =>
      pool.write(`with dead as (select incarnation from node where lease_until < clock_timestamp() for update),
        fenced as (update lane set incarnation = null from dead where lane.incarnation = dead.incarnation returning 1)
        update pending set owner = null from dead where owner = dead.incarnation and (select count(*) from fenced) >= 0`);
    const { owners, dead } = await lateAccept(inOne);
    expect(owners).toEqual([dead.incarnation]);
  });

  test("that race with their rescue either wrote, and own nothing any more, or did not write", async () => {
    const pool = await open(4);
    let wrote = 0;
    const races = 300;
    for (let race = 0; race < races; race++) {
      const dead = await joined(pool);
      const { slot, batch } = markOf(dead);
      const second = markOf(dead, 1);
      await expire(pool, dead);
      const seqs = [race * 2 + 1, race * 2 + 2] as const;
      const [, ...answers] = await Promise.all([
        rescueExpired(pool),
        accept(pool, [seqs[0]], [slot, dead.incarnation, batch + 1]),
        accept(pool, [seqs[1]], [second.slot, dead.incarnation, second.batch + 1]),
      ]);
      wrote += answers.flat().length;
    }
    const queue = await queueOf(pool);
    expect(queue.filter(({ owner }) => owner !== null)).toEqual([]);
    expect(queue).toHaveLength(wrote);
    expect(await pool.read("select 1 from event")).toHaveLength(wrote);
  });

  /** A pool that others go on using. */
  const shared = (pool: Pool): Pool => ({ ...pool, close: async () => {} });

  /** A node whose time passes when the test says so. */
  async function member(pool: Pool, options: Partial<MembershipOptions> = {}) {
    const time = createManualClock();
    const told: string[] = [];
    let joinedAnew = Promise.withResolvers<Node>();
    let rescued = Promise.withResolvers<readonly EndedNode[]>();
    let failed = Promise.withResolvers<unknown>();
    const membership = createMembership({
      pool,
      openPool: () => shared(pool),
      clock: time.clock,
      patience: { url: "postgres://db.test/postrider", clock: time.clock, onFailure() {} },
      description,
      onLost: () => told.push("lost"),
      onJoined: (node) => joinedAnew.resolve(node),
      heed: async () => {},
      onBeat() {},
      onRescued: (nodes) => rescued.resolve(nodes),
      onFailure: (error) => failed.resolve(error),
      ...options,
    });
    postgres.cleanUpFirst(() => membership.stop());
    const node = await membership.start();
    return {
      membership,
      node,
      told,
      time,
      whenJoined: () => joinedAnew.promise.finally(() => (joinedAnew = Promise.withResolvers())),
      whenRescued: () => rescued.promise.finally(() => (rescued = Promise.withResolvers())),
      whenFailed: () => failed.promise.finally(() => (failed = Promise.withResolvers())),
      /** Lets time pass up to the next heartbeat, and waits until that is answered. */
      async beat() {
        const next = time.whenSet(3_000);
        time.advance(3_000);
        await next;
      },
    };
  }

  test("tell where they listen at once, and again when they join anew", async () => {
    const pool = await open();
    const { membership, node, beat: nextBeat, whenJoined } = await member(pool);
    const told = () => pool.read<{ listener: string }>("select listener from node");
    expect(await told()).toEqual([{ listener: "" }]);
    await membership.announce("10.0.0.1:8080");
    expect(await told()).toEqual([{ listener: "10.0.0.1:8080" }]);
    await nextBeat();
    expect(await told()).toEqual([{ listener: "10.0.0.1:8080" }]);
    await retire(pool, node.incarnation);
    const joined = whenJoined();
    void nextBeat();
    await joined;
    expect(await told()).toEqual([{ listener: "10.0.0.1:8080" }]);
  });

  test("whose row is gone learn it at their next heartbeat, and join anew", async () => {
    const pool = await open();
    const { membership, node, told, time, whenJoined } = await member(pool);
    await retire(pool, node.incarnation);
    expect(membership.current()).toEqual(node);
    time.advance(3_000);
    const next = await whenJoined();
    expect(told).toEqual(["lost"]);
    expect(next.incarnation).toBeGreaterThan(node.incarnation);
    expect(membership.current()).toEqual(next);
    expect(await beat(pool, next, description.listener)).not.toBeNull();
  });

  test("whose database has gone back start nothing from then on, give up what they own, and join anew at once", async () => {
    const pool = await open();
    const { membership, node, told, whenFailed, whenJoined } = await member(pool);
    await accept(pool, [1], [markOf(node).slot, node.incarnation, 1]);
    membership.suspect(node.incarnation);
    expect([membership.mayStart(), membership.mayTrust()]).toEqual([false, false]);
    expect(await whenFailed()).toMatchObject({ name: "DatabaseWentBack" });
    const next = await whenJoined();
    expect([membership.mayStart(), membership.mayTrust(), told]).toEqual([true, true, ["lost"]]);
    expect(next.lanes[0]).toEqual({ slot: markOf(node).slot, batch: 1 });
    expect(await queueOf(pool)).toEqual([{ seq: 1, owner: null }]);
    expect(await pool.read("select incarnation from node")).toEqual([{ incarnation: next.incarnation }]);
  });

  test("find out with a heartbeat, while they heed, that the database has gone back", async () => {
    const pool = await open();
    let heed = () => {};
    const { membership, node, told, time, whenJoined } = await member(pool, { heed: async () => heed() });
    heed = () => membership.suspect(node.incarnation);
    time.advance(3_000);
    expect((await whenJoined()).incarnation).toBeGreaterThan(node.incarnation);
    expect(told).toEqual(["lost"]);
  });

  test.each([
    ["were declared dead say nothing of a database that has gone back", true, ["lost"]],
    ["are another node by then go on", false, []],
  ])("that suspect something and %s", async (_, isCurrent, expected) => {
    const pool = await open();
    const failures: unknown[] = [];
    const { membership, node, told, whenJoined, beat } = await member(pool, { onFailure: (e) => failures.push(e) });
    if (isCurrent) await retire(pool, node.incarnation);
    membership.suspect(isCurrent ? node.incarnation : node.incarnation - 1);
    await (isCurrent ? whenJoined() : beat());
    expect([told, failures]).toEqual([expected, []]);
    expect(membership.mayStart()).toBe(true);
  });

  test("are not taken for another one that has the same number, as a database that went back may give it", async () => {
    const pool = await open();
    const node = await joined(pool);
    await pool.write("update node set joined_at = joined_at + interval '1 second'");
    expect(await beat(pool, node, description.listener)).toBeNull();
  });

  test("start attempts for 9 s after the last heartbeat that was confirmed, counted from when it was sent", async () => {
    const url = await postgres.migrated();
    const pool = postgres.pool(url, { size: 2 });
    const { membership, time, beat: next, whenFailed } = await member(pool);
    time.advance(2_999);
    expect(membership.mayStart()).toBe(true);
    const set = time.whenSet(3_000);
    time.advance(1);
    await set;
    time.advance(2_000);
    await next();
    expect(membership.mayStart()).toBe(true);
    // From here on nothing is confirmed.
    await pool.close();
    time.advance(3_000);
    await whenFailed();
    time.advance(5_999);
    expect(membership.mayStart()).toBe(true);
    time.advance(1);
    expect(membership.mayStart()).toBe(false);
  });

  test("rescue only after they were in touch with the database for a whole lease", async () => {
    const pool = await open();
    const { time, beat: next, whenRescued } = await member(pool);
    const dead = await joined(pool);
    await accept(pool, [1], [markOf(dead).slot, dead.incarnation, 1]);
    await expire(pool, dead);
    for (let i = 0; i < 6; i++) await next();
    expect(await queueOf(pool)).toEqual([{ seq: 1, owner: dead.incarnation }]);
    const look = time.whenSet(1_000);
    time.advance(2_000);
    await look;
    time.advance(1_000);
    expect(await whenRescued()).toMatchObject([{ incarnation: dead.incarnation }]);
    expect(await queueOf(pool)).toEqual([{ seq: 1, owner: null }]);
  });

  /** A node that rescues another one, which takes until the test says so, or until the node stops. */
  async function longRescue() {
    const url = await postgres.migrated();
    const [pool, observer] = [postgres.pool(url, { size: 1 }), postgres.pool(url)];
    const rescuer = await member(pool, { openPool: () => postgres.pool(url, { size: 1 }) });
    const dead = await joined(observer);
    const held = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const ended = observer.transact(async (tx) => {
      await tx.run("select 1 from lane where incarnation = $1 for update", [dead.incarnation]);
      held.resolve();
      await mayEnd.promise;
    });
    await held.promise;
    await expire(observer, dead);
    for (let i = 0; i < 7; i++) await rescuer.beat();
    await whenWaiting(observer, 1, "update lane");
    return {
      ...rescuer,
      dead,
      observer,
      async end() {
        mayEnd.resolve();
        await ended;
      },
    };
  }

  test("that rescue for long go on beating, and nobody else begins", async () => {
    const { beat: next, dead, observer, end, whenRescued } = await longRescue();
    for (let i = 0; i < 3; i++) await next();
    expect(await hasExpired(observer)).toBe(false);
    await end();
    expect(await whenRescued()).toMatchObject([{ incarnation: dead.incarnation }]);
  });

  test("that stop while they rescue for long leave that to others", async () => {
    const { membership, dead, observer, end } = await longRescue();
    await membership.stop();
    await end();
    while (!(await hasExpired(observer))) await Bun.sleep(2);
    expect(await rescueExpired(observer)).toMatchObject([{ incarnation: dead.incarnation }]);
  });

  test("that stop give everything back at once", async () => {
    const pool = await open();
    const { membership, node } = await member(pool);
    await accept(pool, [1], [markOf(node).slot, node.incarnation, 1]);
    await membership.stop();
    expect(await queueOf(pool)).toEqual([{ seq: 1, owner: null }]);
    expect(await pool.read("select 1 from node")).toHaveLength(0);
    expect([membership.current(), membership.mayStart()]).toEqual([null, false]);
  });

  test("that find every slot taken say so, unless those who hold them are dead", async () => {
    const pool = await open();
    const nodes = await Promise.all(Array.from({ length: 32 }, () => joined(pool)));
    const time = createManualClock();
    const membership = createMembership({
      pool,
      openPool: () => shared(pool),
      clock: time.clock,
      patience: { url: "postgres://db.test/postrider", clock: time.clock, onFailure() {} },
      description,
      onLost() {},
      onJoined() {},
      heed: async () => {},
      onBeat() {},
      onRescued() {},
      onFailure() {},
    });
    const watch = async (starting: Promise<unknown>) => {
      let isDone = false;
      const done = starting.finally(() => (isDone = true)).catch(() => {});
      while (!isDone) {
        await Promise.race([time.whenSet(1_000), done]);
        time.advance(1_000);
      }
    };
    const refused = membership.start();
    await watch(refused);
    await expect(refused).rejects.toThrow(/All 32 places .* Try: stop one of them/);
    const dead = nodes[7];
    if (dead) await expire(pool, dead);
    const started = membership.start();
    await watch(started);
    expect((await started).slot).toBe(dead?.slot ?? -1);
    await membership.stop();
  });
});
