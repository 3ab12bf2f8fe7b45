import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import { rescueExpired } from "../../src/store/postgres/nodes.ts";
import { createPool } from "../../src/store/postgres/pool.ts";
import { batchOf, gate, type Hooks, ingestOne, outcome, register, startHooks, until } from "../support/api-server.ts";
import { createMigratedDatabase, describeWithPostgres } from "../support/postgres.ts";
import { createCuttingProxy } from "../support/postgres-proxy.ts";
import { openStream } from "../support/stream-client.ts";
import type { TestApp } from "../support/test-app.ts";
import { accountAt, asOperator, concurrency, shareAccount, startNode } from "./pair.ts";

/**
 * A server that dies says nothing any more. Here its connections to the database are cut, and what others do when its lease has run
 * out is done at once.
 */
describeWithPostgres("when one of two servers dies", () => {
  let hooks: Hooks;
  beforeAll(async () => {
    hooks = await startHooks();
  });
  afterAll(() => hooks.stop());

  async function startPair() {
    const database = await createMigratedDatabase();
    const proxy = await createCuttingProxy(database.url);
    const pool = createPool({ url: database.url, size: 1, clock: systemClock });
    const [a, b] = [await startNode(database.url, "a"), await startNode(proxy.url, "b")];
    return {
      a,
      b,
      url: database.url,
      die: proxy.cutOff,
      /** Somebody begins to watch its account's stream, beside those who do. */
      whenWatchedBy: (nodes: number) =>
        until(
          () => pool.read<{ n: number }>("select count(*)::int as n from stream_watch"),
          ([found]) => found?.n === nodes,
        ),
      async lapse() {
        await pool.write("update node set lease_until = clock_timestamp() - interval '1 second' where name = 'b'");
        expect(await rescueExpired(pool)).toHaveLength(1);
      },
      mend: proxy.mend,
      async [Symbol.asyncDispose]() {
        proxy.mend();
        await Promise.all([a.stop(), b.stop()]);
        await proxy.close();
        await pool.close();
        await database.remove();
      },
    };
  }

  const linesOf = ({ log }: TestApp, event: string) => log.filter((line) => line.includes(`"event":"${event}"`));

  const nodesOf = async (server: Parameters<typeof asOperator>[0]): Promise<string[]> =>
    (await asOperator(server, "GET", "/nodes")).body.nodes.map(({ name }: { name: string }) => name);

  test("the other delivers what was accepted there, a stream goes on at the other, and it comes back as another", async () => {
    await using pair = await startPair();
    const { a, b } = pair;
    const { atA, atB } = await shareAccount(pair);
    const held = gate();
    const hook = hooks.hook(held.answer);
    await register(atA, hook.url);
    const stream = await openStream(b, atB.jwt);
    await stream.whenComments(1);
    const { body } = await batchOf(b, atB, 2 * concurrency);
    await hook.whenReceived(concurrency / 2);
    const { id } = await stream.next("event.accepted");
    const inFlight = hook.received.length;

    pair.die();
    // Those that are in flight are never answered.
    hook.answer = 200;
    const resuming = openStream(a, atA.jwt, id);
    await pair.whenWatchedBy(2);
    await pair.lapse();
    expect(await nodesOf(a)).toEqual(["a"]);
    await until(
      () => linesOf(b, "storage.failed").length,
      (count) => count > 0,
    );
    expect(linesOf(a, "storage.failed")).toEqual([]);
    // Whoever watches it sees what is wrong.
    expect((await b.request("GET", "/metrics")).status).toBe(200);
    const resumed = await resuming;
    for (const eventId of body.eventIds) expect(await outcome(atA, eventId)).toMatchObject({ state: "DELIVERED" });
    const ids = hook.received.map(({ headers }) => String(headers["service-event-id"]));
    const counts = body.eventIds.map((eventId: string) => ids.filter((one) => one === eventId).length);
    expect(counts.filter((count: number) => count === 1)).toHaveLength(2 * concurrency - inFlight);
    expect(counts.filter((count: number) => count === 2)).toHaveLength(inFlight);
    await until(
      () => resumed.messages.filter(({ event }) => event === "delivery.finished").length,
      (count) => count === 2 * concurrency,
    );
    // What the dead one did last, it could tell nobody.
    expect(resumed.messages.filter(({ event }) => event === "resync")).toHaveLength(1);
    resumed.close();

    pair.mend();
    await until(
      () => nodesOf(a),
      (names) => names.length === 2,
    );
    await until(
      () => b.request("GET", "/readyz"),
      ({ status }) => status === 200,
    );
    // Its reader was sent away, as it may have missed the end of a session.
    await stream.ended;
    held.open();
    const later = await ingestOne(accountAt(b, atB));
    expect(await outcome(atB, later)).toMatchObject({ state: "DELIVERED", attempts: 1 });
  });
});
