import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ConnectionPool, createConnectionPool } from "../../../src/delivery/network/connection-pool.ts";
import { type HostileReceiver, head, startHostileReceiver, write } from "../../support/hostile-receiver.ts";
import { createManualClock } from "../../support/manual-clock.ts";

let receivers: HostileReceiver[];
beforeAll(async () => {
  receivers = await Promise.all([startHostileReceiver({}), startHostileReceiver({})]);
});
afterAll(() => {
  for (const receiver of receivers) receiver.close();
});

const request = { head: "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n", body: Buffer.from("{}") };

const destinationOf = (receiver: HostileReceiver | undefined) => ({
  origin: `http://127.0.0.1:${receiver?.port}`,
  isSecure: false,
  host: "127.0.0.1",
  port: receiver?.port ?? 0,
  servername: "",
  lookup: () => {
    throw new Error("A literal address needs no look-up");
  },
});

/** One exchange, resolved when its connection is back in the pool or closed; whether it was a kept one. */
function exchange(pool: ConnectionPool, receiver: HostileReceiver | undefined, fresh = false): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const connection = pool.take(destinationOf(receiver), fresh);
    const { isReused } = connection;
    connection.send(request, {
      onInformation() {},
      onHead() {},
      onBody() {},
      onFree: () => resolve(isReused),
      onGone: reject,
    });
  });
}

/** `count` exchanges at once with each receiver; how many used a kept connection. */
async function burst(pool: ConnectionPool, count: number): Promise<number> {
  const all = receivers.flatMap((receiver) => Array.from({ length: count }, () => exchange(pool, receiver)));
  return (await Promise.all(all)).filter(Boolean).length;
}

describe("kept connections", () => {
  test("are at most so many over all hosts, and closed ones make room again", async () => {
    const { clock, advance } = createManualClock();
    const pool = createConnectionPool({ clock, maxIdleConnections: 6 });
    expect(await burst(pool, 5)).toBe(0);
    expect(pool.idle()).toBe(6);
    expect(await burst(pool, 5)).toBe(6);
    expect(pool.idle()).toBe(6);
    advance(4_500);
    expect(pool.idle()).toBe(0);
    expect(await burst(pool, 5)).toBe(0);
    expect(pool.idle()).toBe(6);
    pool.close();
  });

  test("are not used on when they lead where nothing may go any more", async () => {
    const closed = new Set<string>();
    const pool = createConnectionPool({ clock: createManualClock().clock, mayKeep: (address) => !closed.has(address) });
    expect([await exchange(pool, receivers[0]), await exchange(pool, receivers[0])]).toEqual([false, true]);
    closed.add("127.0.0.1");
    // One that is under way ends as it began, and is the last one.
    expect([await exchange(pool, receivers[0]), await exchange(pool, receivers[0])]).toEqual([true, false]);
    expect(pool.idle()).toBe(0);
    pool.close();
  });

  test("are closed after 4 to 4.5 s without use, the longest unused first", async () => {
    const { clock, advance, timers } = createManualClock();
    const pool = createConnectionPool({ clock });
    await burst(pool, 2);
    advance(3_000);
    expect(await exchange(pool, receivers[0])).toBe(true);
    for (let i = 0; i < 3; i++) advance(500);
    expect(pool.idle()).toBe(1);
    expect(await exchange(pool, receivers[0])).toBe(true);
    for (let i = 0; i < 9; i++) advance(500);
    expect(pool.idle()).toBe(0);
    expect(timers.size).toBe(0);
    pool.close();
  });

  test("that the server closes are no longer counted", async () => {
    const { clock } = createManualClock();
    const pool = createConnectionPool({ clock, maxIdleConnections: 1 });
    const closing = await startHostileReceiver({});
    await exchange(pool, closing);
    expect(pool.idle()).toBe(1);
    closing.close();
    await closing.disconnected;
    while (pool.idle() > 0) await new Promise((resolve) => setImmediate(resolve));
    await exchange(pool, receivers[0]);
    expect(await exchange(pool, receivers[0])).toBe(true);
    pool.close();
  });

  test("that end in use are counted once", async () => {
    const { clock } = createManualClock();
    const pool = createConnectionPool({ clock, maxIdleConnections: 1 });
    const closing = await startHostileReceiver({
      onRequest: (peer, nth) =>
        void peer.write(head(200, "Content-Length: 0", nth === 1 ? "Connection: keep-alive" : "Connection: close")),
    });
    await exchange(pool, closing);
    expect(await exchange(pool, closing)).toBe(true);
    await closing.disconnected;
    await burst(pool, 1);
    expect(pool.idle()).toBe(1);
    closing.close();
    pool.close();
  });

  test("are neither taken nor left by a request that wants a fresh one", async () => {
    const { clock } = createManualClock();
    const pool = createConnectionPool({ clock });
    await exchange(pool, receivers[0]);
    expect(await exchange(pool, receivers[0], true)).toBe(false);
    expect(pool.idle()).toBe(1);
    pool.close();
  });

  test("are none that were ended for their answer", async () => {
    const { clock } = createManualClock();
    const pool = createConnectionPool({ clock });
    const receiver = await startHostileReceiver({});
    const connection = pool.take(destinationOf(receiver), false);
    connection.send(request, {
      onInformation() {},
      onHead: () => connection.end(),
      onBody() {},
      onFree() {},
      onGone() {},
    });
    await receiver.disconnected;
    expect(pool.idle()).toBe(0);
    expect(await exchange(pool, receiver)).toBe(false);
    receiver.close();
    pool.close();
  });

  test("end with the pool, and its timer too", async () => {
    const { clock, timers } = createManualClock();
    const pool = createConnectionPool({ clock });
    const receiver = await startHostileReceiver({});
    await exchange(pool, receiver);
    expect(timers.size).toBe(1);
    pool.close();
    await receiver.disconnected;
    expect(timers.size).toBe(0);
    receiver.close();
  });
});

test("a connection that was ended hears at most one piece of what had been read already", async () => {
  const answer = head(102);
  for (const fresh of [false, true]) {
    const { clock } = createManualClock();
    const pool = createConnectionPool({ clock });
    const receiver = await startHostileReceiver({ onRequest: write(answer.repeat(20_000)) });
    let heard = 0;
    await new Promise<void>((resolve) => {
      const connection = pool.take(destinationOf(receiver), fresh);
      connection.send(request, {
        onInformation() {
          heard += 1;
          connection.end();
          resolve();
        },
        onHead() {},
        onBody() {},
        onFree() {},
        onGone() {},
      });
    });
    await receiver.disconnected;
    expect(heard).toBeWithin(1, 4096 / answer.length + 2);
    receiver.close();
    pool.close();
  }
});
