import { expect, test } from "bun:test";
import { batchOf, until } from "./support/api-server.ts";
import { createFakeClock } from "./support/fake-clock.ts";
import { connectRaw, headOf } from "./support/raw-peer.ts";
import { startTestApp } from "./support/test-app.ts";

/** More than the kernel keeps for a connection. */
const events = 120;
const payload = { text: "x".repeat(240_000) };

/** A server, and a client that has begun to read a large list and has then stopped. Time stands still. */
async function startReading() {
  const clock = createFakeClock();
  const server = await startTestApp({ clock });
  const account = await server.account();
  for (let n = 0; n < events; n += 20) expect((await batchOf(server, account, 20, payload)).status).toBe(202);
  const peer = await connectRaw(server.url);
  peer.write(`${headOf("GET", "/v1/events?size=1000", { Authorization: `Bearer ${account.jwt}` })}\r\n`);
  await peer.until((received) => received.includes("originalPayload"));
  peer.socket.pause();

  /** Lets time pass until it has ended. */
  async function endOf<T>(ending: Promise<T>): Promise<T> {
    let hasEnded = false;
    void ending.finally(() => (hasEnded = true));
    while (!hasEnded) {
      await Bun.sleep(1);
      clock.advance(20);
    }
    return ending;
  }

  async function stop() {
    const ending = server.app.stop();
    const isRefused = () =>
      fetch(`${server.url}/healthz`).then(
        () => false,
        () => true,
      );
    await until(isRefused, (refused) => refused);
    return () => endOf(ending);
  }

  /** Of the successor nothing is asked but what it is told. */
  async function handOver() {
    const { promise: hasPort, resolve } = Promise.withResolvers<void>();
    const takesOver = async () => {
      resolve();
      return true;
    };
    const takePort = async () => void (await takesOver());
    const ending = server.app.handOver({
      ...{ pid: 0, version: "next", kill() {} },
      ...{ takePort, enter: async () => true, enterBeside: takesOver },
    });
    await hasPort;
    await new Promise((turned) => setImmediate(turned));
    return () => endOf(ending);
  }

  const isWhole = (received: string) => received.endsWith("0\r\n\r\n");
  return { server, peer, ways: { stop, handOver }, isWhole };
}

for (const way of ["stop", "handOver"] as const) {
  test(`a large answer under way at a ${way} goes on while there is time`, async () => {
    const { server, peer, ways, isWhole } = await startReading();
    const end = await ways[way]();
    peer.socket.resume();
    const received = await peer.until(isWhole);
    expect(received.split(payload.text).length - 1).toBe(events);
    expect(await end()).toBe(true);
    await server.stop();
  }, 60_000);

  test(`one that nobody reads does not hold up a ${way}, and is seen to be incomplete`, async () => {
    const { server, peer, ways, isWhole } = await startReading();
    expect(await (await ways[way]())()).toBe(true);
    peer.socket.resume();
    expect(isWhole(await peer.closed)).toBe(false);
    await server.stop();
  }, 60_000);
}
