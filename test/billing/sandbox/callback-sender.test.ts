import { afterEach, expect, test } from "bun:test";
import { createCallbackSender } from "../../../src/billing/sandbox/callback-sender.ts";
import { createLog } from "../../../src/lib/log.ts";
import { createSelfSigned } from "../../support/certificates.ts";
import { createManualClock } from "../../support/manual-clock.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const body = new TextEncoder().encode('{"event":"charge.success","data":{"reference":"ver-secret"}}');
const signature = "ab".repeat(64);

/** The program's own listener, which answers one status after the other; 0 is no answer at all. */
function setUp(statuses: readonly number[], tls?: { cert: string; key: string }) {
  const time = createManualClock();
  const log: string[] = [];
  const calls: { method: string; path: string; body: string; signature: string | null }[] = [];
  const arrived = Promise.withResolvers<void>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls && { tls }),
    async fetch(request) {
      const status = statuses[calls.length] ?? 500;
      calls.push({
        method: request.method,
        path: new URL(request.url).pathname,
        body: await request.text(),
        signature: request.headers.get("x-paystack-signature"),
      });
      arrived.resolve();
      if (status === 0) await new Promise(() => {});
      return new Response(null, { status, headers: { Location: "/pay/elsewhere" } });
    },
  });
  const sender = createCallbackSender({
    url: () => `http${tls ? "s" : ""}://127.0.0.1:${server.port}/pay/callback`,
    clock: time.clock,
    log: createLog({ level: "debug", format: "json", now: () => 0, out: (line) => void log.push(line) }),
  });
  cleanups.push(() => server.stop(true), sender.stop);
  return { time, log, calls, server, sender, arrived: arrived.promise };
}

test("a callback arrives as it was signed, once", async () => {
  const { sender, calls, log, time } = setUp([200]);
  await sender.post(body, signature);
  const path = "/pay/callback";
  expect(calls).toEqual([{ method: "POST", path, body: new TextDecoder().decode(body), signature }]);
  expect([log, time.timers.size]).toEqual([[], 0]);
});

test("an own listener with any certificate is good enough", async () => {
  const { sender, calls } = setUp([200], createSelfSigned({ hosts: ["public.example"] }));
  await sender.post(body, signature);
  expect(calls).toHaveLength(1);
});

test.each([204, 302, 401, 500])("an answer %i is tried again after 1 s and after 10 s", async (status) => {
  const { sender, calls, log, time } = setUp([status, status, 200]);
  const first = time.whenSet(1_000);
  const sent = sender.post(body, signature);
  await first;
  expect(calls).toHaveLength(1);
  time.advance(999);
  expect(time.timers.size).toBe(1);
  const second = time.whenSet(10_000);
  time.advance(1);
  // The limit of the second try is as long as the pause after it.
  await second;
  const pause = time.whenSet(10_000);
  await pause;
  expect(calls).toHaveLength(2);
  time.advance(10_000);
  await sent;
  expect(calls).toHaveLength(3);
  expect(log).toEqual([]);
});

test("a callback that nobody takes is given up after three tries, in words without its contents", async () => {
  const { sender, calls, log, time } = setUp([500, 503, 500]);
  let pause = time.whenSet(1_000);
  const sent = sender.post(body, signature);
  await pause;
  const limit = time.whenSet(10_000);
  time.advance(1_000);
  await limit;
  pause = time.whenSet(10_000);
  await pause;
  time.advance(10_000);
  await sent;
  expect(calls).toHaveLength(3);
  expect(log.map((line) => JSON.parse(line))).toMatchObject([
    { level: "warn", event: "sandbox.callback_lost", tries: 3, reason: "HTTP 500" },
  ]);
  expect(log.join()).not.toMatch(/secret|abab/);
  expect(time.timers.size).toBe(0);
});

test("an answer that does not come is waited for 10 s", async () => {
  const { sender, calls, time, arrived } = setUp([0, 200]);
  const sent = sender.post(body, signature);
  await arrived;
  const pause = time.whenSet(1_000);
  time.advance(10_000);
  await pause;
  time.advance(1_000);
  await sent;
  expect(calls).toHaveLength(2);
});

test("a listener that is not there is a failed try", async () => {
  const { sender, server, log, time } = setUp([]);
  await server.stop(true);
  const pause = time.whenSet(1_000);
  const sent = sender.post(body, signature);
  await pause;
  await sender.stop();
  await sent;
  expect([log, time.timers.size]).toEqual([[], 0]);
});

test("a stop breaks off what is under way, in a try and in a pause, and nothing begins afterwards", async () => {
  const trying = setUp([0]);
  const pausing = setUp([500]);
  const paused = pausing.time.whenSet(1_000);
  const sent = [trying, pausing].map(({ sender }) => sender.post(body, signature));
  await Promise.all([trying.arrived, paused]);
  await Promise.all([trying.sender.stop(), pausing.sender.stop()]);
  await Promise.all(sent);
  await trying.sender.post(body, signature);
  for (const { calls, log, time } of [trying, pausing]) {
    expect([calls.length, log, time.timers.size]).toEqual([1, [], 0]);
  }
});

test("many callbacks go a few at a time, and all arrive", async () => {
  const { sender, calls, time } = setUp(Array.from({ length: 100 }, () => 200));
  let most = 0;
  for (let i = 0; i < 100; i++) {
    void sender.post(body, signature);
    most = Math.max(most, time.timers.size);
  }
  await sender.whenIdle();
  expect(calls).toHaveLength(100);
  expect(most).toBe(16);
});
