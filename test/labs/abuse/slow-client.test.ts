import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { useServer } from "../../api/scenario.ts";
import { type Hooks, ingestOne, register, startHooks } from "../../support/api-server.ts";
import { heldUpMs } from "../../support/patience.ts";
import { connectRaw, headOf, type RawPeer, statusOf } from "../../support/raw-peer.ts";

/**
 * Slow-loris: clients that keep a connection by sending next to nothing. The listener has 8 s of patience here in place of
 * 30, and looks every 4 s; a head that is not complete is cut after 12 s whatever the setting. `bun run abuse` waits with
 * the real ones.
 */

let hooks: Hooks;
afterAll(() => hooks.stop());
const server = useServer({ idleTimeout: 8 });
/** All of them wait side by side. */
const peers = new Map<string, { peer: RawPeer; endedAfterMs: Promise<number> }>();
const timers: ReturnType<typeof setInterval>[] = [];
const copies = 20;

beforeAll(async () => {
  hooks = await startHooks();
  const { apiKey } = await server().account();
  const login = (fields: Record<string, string>) => `${headOf("POST", "/v1/tenants/auth/login", fields)}\r\n`;
  const ingest = (key: string) =>
    `${headOf("POST", "/v1/ingest", { Authorization: `Bearer ${key}`, "Content-Length": "200000" })}\r\n`;
  const open = async (name: string, begin: string, drip?: string) => {
    const peer = await connectRaw(server().url);
    const startedMs = performance.now();
    const endedAfterMs = peer.closed.then(() => performance.now() - startedMs);
    if (begin !== "") peer.write(begin);
    if (drip !== undefined) timers.push(setInterval(() => peer.write(drip), 500));
    peers.set(name, { peer, endedAfterMs });
  };
  for (let n = 0; n < copies; n++) {
    await open(`a connection without a word ${n}`, "");
    await open(`a head that goes on ${n}`, headOf("GET", "/healthz"), "X-A: b\r\n");
    await open(`a body that stalls ${n}`, `${login({ "Content-Length": "16000" })}{`);
    await open(`a body of two bytes a second ${n}`, login({ "Content-Length": "16000" }), " ");
    await open(`chunks of two bytes a second ${n}`, login({ "Transfer-Encoding": "chunked" }), "1\r\n \r\n");
    await open(`an event of two bytes a second ${n}`, ingest(apiKey), " ");
    await open(`a body behind its 401 ${n}`, ingest("svc_sk_none"), " ");
    await open(`a second request that stalls ${n}`, `${headOf("GET", "/healthz")}\r\n${headOf("GET", "/")}`);
  }
});
afterAll(() => {
  for (const timer of timers) clearInterval(timer);
});

describe("while they wait", () => {
  test("another tenant's events are taken and delivered at once", async () => {
    const account = await server().account();
    const hook = hooks.hook();
    await register(account, hook.url);
    for (let n = 0; n < 20; n++) {
      const at = performance.now();
      await ingestOne(account, { n });
      await hook.whenReceived(n + 1);
      expect(performance.now() - at).toBeLessThan(heldUpMs);
    }
    expect([...peers.values()].every(({ peer }) => !peer.socket.destroyed)).toBe(true);
  });
});

test("each of them is cut off", async () => {
  for (const [name, { endedAfterMs }] of peers) {
    expect([name, (await endedAfterMs) < 28_000]).toEqual([name, true]);
  }
}, 120_000);

test("and only what was a whole request had an answer", () => {
  const wrong = [...peers].filter(([name, { peer }]) => {
    const status = statusOf(peer.received());
    if (name.startsWith("a second")) return status !== 200;
    return name.startsWith("a body behind its 401") ? status !== 401 : status !== 0;
  });
  expect(wrong.map(([name, { peer }]) => [name, peer.received()])).toEqual([]);
});

test("the log has no defect", () => {
  expect(server().log.filter((line) => /"level":"(error|warn)"/.test(line))).toEqual([]);
});
