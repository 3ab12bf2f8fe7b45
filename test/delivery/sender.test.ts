import { afterAll, describe, expect, test } from "bun:test";
import { createHmac, createPublicKey, verify } from "node:crypto";
import { createAddressPolicy } from "../../src/delivery/network/address.ts";
import { createTransport } from "../../src/delivery/network/transport.ts";
import { createOffload } from "../../src/delivery/offload.ts";
import { createSender, type Sender } from "../../src/delivery/sender.ts";
import { createSenderThread, type SenderThread } from "../../src/delivery/sender-thread.ts";
import type { OwnHeaders } from "../../src/domain/webhook-headers.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { dueDelivery, signerMaterial } from "../support/due-delivery.ts";
import { bodyOf, expectOutcome } from "../support/expect-outcome.ts";
import { noResponse, responded } from "../support/expected-outcome.ts";
import { head, startHostileReceiver, write } from "../support/hostile-receiver.ts";
import { startReceiver } from "../support/receiver.ts";

const policy = { localMode: true, allowTargets: [], ownListeners: [] };
const clock = systemClock;
const opened: Sender[] = [];
afterAll(() => {
  for (const sender of opened) sender.close();
});

type Avoid = Pick<SenderThread, "avoid">;

interface Opened {
  sender: Sender & Avoid;
  /** One entry for each request: whether it went out on a kept connection. */
  connections: boolean[];
  log: string[];
}

type Told = Omit<Opened, "sender">;

function onThisThread({ connections }: Told): Sender & Avoid {
  const judge = createAddressPolicy(policy);
  const onConnection = (reused: boolean) => void connections.push(reused);
  return { ...createSender(createTransport({ policy: judge, clock, onConnection })), avoid: judge.avoid };
}

const onOwnThread = ({ connections, log }: Told): SenderThread =>
  createSenderThread({
    settings: () => ({ policy }),
    clock,
    log: createLog({ level: "debug", format: "json", now: () => 0, out: (line) => void log.push(line) }),
    onConnection: (reused) => void connections.push(reused),
    onOwnTime() {},
  });

const kinds: Record<string, (told: Told) => Sender & Avoid> = {
  "on this thread": onThisThread,
  "on a thread of its own": onOwnThread,
  "on this thread while that has time": (told) => {
    const here = onThisThread(told);
    const elsewhere = onOwnThread(told);
    return {
      ...createOffload({ here, elsewhere, clock, busyMs: () => 0, onOwnTime() {} }),
      avoid(listeners) {
        for (const sender of [here, elsewhere]) sender.avoid(listeners);
      },
    };
  },
};

/** All are held to the same. */
describe.each(Object.keys(kinds))("a sender %s", (kind) => {
  function open(): Opened {
    const told = { connections: [], log: [] };
    const sender = kinds[kind]?.(told);
    if (!sender) throw new Error(`There is no sender ${kind}`);
    opened.push(sender);
    return { ...told, sender };
  }

  const material = signerMaterial();
  const orderTo = (url: string, payload: Uint8Array = Buffer.from('{"a":1.0}')) => ({
    delivery: dueDelivery({ url, payload, replayGroupId: "März" }),
    material,
    headers: [],
    now: 1_768_478_400_999,
    isFresh: true,
  });

  test("sends the payload's own bytes, signed", async () => {
    const receiver = startReceiver();
    const { sender } = open();
    const payload = Buffer.from('xx{ "a" : 1.0, "a":12345678901234567890, "ä":"\\u0000" }xx').subarray(2, -2);
    const outcome = await sender.send(orderTo(receiver.url, payload));
    expectOutcome(outcome, responded(204));
    const [got] = receiver.requests;
    expect(got?.body.toString()).toEndWith(`"payload":${payload.toString()}}`);
    const { headers } = got ?? { headers: new Headers() };
    const publicKey = createPublicKey(material.privateKey);
    const text = Buffer.from(got?.body ?? "");
    expect(headers.get("service-replay-group")).toBe("M%C3%A4rz");
    expect(verify(null, text, publicKey, Buffer.from(headers.get("service-signature") ?? "", "base64"))).toBe(true);
    const [hmac] = (headers.get("webhook-signature") ?? "").split(" ");
    const content = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${text}`;
    expect(hmac).toBe(
      `v1,${createHmac("sha256", material.secrets[0] ?? "")
        .update(content)
        .digest("base64")}`,
    );
    await receiver.stop();
  });

  test("signs an event for two webhooks in the same second alike, and anew in the next, each as a receiver verifies it", async () => {
    const receivers = [startReceiver(), startReceiver()];
    const { sender } = open();
    for (const later of [0, 1]) {
      const orders = receivers.map(({ url }) => orderTo(url));
      for (const order of orders) {
        expectOutcome(await sender.send({ ...order, now: order.now + later }), responded(204));
      }
    }
    const publicKey = createPublicKey(material.privateKey);
    const signatures = receivers.map(({ requests }) =>
      requests.map(({ headers, body }) => {
        const [, v1a = ""] = (headers.get("webhook-signature") ?? "").split("v1a,");
        const content = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
        expect(verify(null, Buffer.from(content), publicKey, Buffer.from(v1a, "base64"))).toBe(true);
        return v1a;
      }),
    );
    expect(signatures[0]).toEqual(signatures[1] ?? []);
    expect(new Set(signatures.flat()).size).toBe(2);
    await Promise.all(receivers.map((receiver) => receiver.stop()));
  });

  test("sends the headers of the tenant's own beside ours, as they were written", async () => {
    const receiver = startReceiver();
    const { sender } = open();
    const headers: OwnHeaders = [
      ["Authorization", "Bearer 1"],
      ["X-Shop", "a b"],
    ];
    expectOutcome(await sender.send({ ...orderTo(receiver.url), headers }), responded(204));
    const got = receiver.requests[0]?.headers;
    expect([got?.get("authorization"), got?.get("x-shop")]).toEqual(["Bearer 1", "a b"]);
    expect(got?.get("content-type")).toBe("application/json");
    await receiver.stop();
  });

  test("keeps many orders of one moment apart, and connections for the next", async () => {
    const receiver = startReceiver();
    const { sender, connections } = open();
    const payloads = Array.from({ length: 50 }, (_, i) => Buffer.from(JSON.stringify({ i, text: "x".repeat(i * 37) })));
    const sendAll = () => Promise.all(payloads.map((payload) => sender.send(orderTo(receiver.url, payload))));
    const outcomes = [...(await sendAll()), ...(await sendAll())];
    for (const outcome of outcomes) expectOutcome(outcome, responded(204));
    const got = receiver.requests.map(({ body }) => JSON.parse(body.toString()).payload.i).toSorted((a, b) => a - b);
    expect(got).toEqual(payloads.flatMap((_, i) => [i, i]));
    expect(connections).toHaveLength(100);
    expect(connections.filter((reused) => reused).length).toBeGreaterThanOrEqual(50);
    await receiver.stop();
  });

  test("answers with the status, Retry-After and the body", async () => {
    const receiver = await startHostileReceiver({
      onRequest: write(`${head(503, "Retry-After: 7", "Content-Length: 4")}late`),
    });
    const outcome = await open().sender.send(orderTo(`http://127.0.0.1:${receiver.port}/`));
    expect(outcome).toMatchObject({ kind: "responded", status: 503, retryAfter: "7" });
    expect(await bodyOf(outcome)).toBe("late");
    receiver.close();
  });

  test("answers with the head when that is complete, and with the body when that comes", async () => {
    const rest = Promise.withResolvers<void>();
    const receiver = await startHostileReceiver({
      onRequest(peer) {
        peer.write(`${head(200, "Content-Length: 8")}early`);
        void rest.promise.then(() => peer.write("end"));
      },
    });
    const outcome = await open().sender.send(orderTo(`http://127.0.0.1:${receiver.port}/`));
    expect(outcome).toMatchObject({ kind: "responded", status: 200, body: { ended: false } });
    rest.resolve();
    expect(await bodyOf(outcome)).toBe("earlyend");
    receiver.close();
  });

  test("refuses what the policy forbids, without dialling", async () => {
    const { sender, connections } = open();
    expectOutcome(await sender.send(orderTo("http://10.0.0.1/")), noResponse("address_not_public", "http not allowed"));
    expect(connections).toEqual([]);
  });

  test.each(["127.0.0.1", "localhost"])("refuses a listener at %s as soon as it is told to avoid it", async (host) => {
    const receiver = startReceiver();
    const { port } = new URL(receiver.url);
    const { sender } = open();
    const order = orderTo(`http://${host}:${port}/`);
    expectOutcome(await sender.send(order), responded(204));
    sender.avoid([{ host: "127.0.0.1", port: Number(port) }]);
    expectOutcome(await sender.send(order), noResponse("address_not_public", "own listener"));
    sender.avoid([]);
    expectOutcome(await sender.send(order), responded(204));
    expect(receiver.requests).toHaveLength(2);
    await receiver.stop();
  });

  test("breaks an attempt off by its signal, and the connection with it", async () => {
    const arrived = Promise.withResolvers<void>();
    const receiver = await startHostileReceiver({ onRequest: () => arrived.resolve() });
    const { sender } = open();
    const controller = new AbortController();
    const sending = sender.send(orderTo(`http://127.0.0.1:${receiver.port}/`), controller.signal);
    await arrived.promise;
    controller.abort();
    expectOutcome(await sending, noResponse("interrupted"));
    await receiver.disconnected;
    expectOutcome(
      await sender.send(orderTo(`http://127.0.0.1:${receiver.port}/`), controller.signal),
      noResponse("interrupted"),
    );
    expect(receiver.requests()).toBe(1);
    receiver.close();
  });

  test("sends nothing of an order that is broken off in the same moment", async () => {
    const receiver = startReceiver();
    const { sender } = open();
    const controller = new AbortController();
    const sending = sender.send(orderTo(receiver.url), controller.signal);
    const other = sender.send(orderTo(receiver.url, Buffer.from('"other"')));
    controller.abort();
    expectOutcome(await sending, noResponse("interrupted"));
    expectOutcome(await other, responded(204));
    expect(receiver.requests.filter(({ body }) => !body.includes('"other"')).length).toBeLessThanOrEqual(1);
    await receiver.stop();
  });

  test("comes back with everything as aborted when it is closed, also with the rest of a body, and later", async () => {
    const arrived = Promise.withResolvers<void>();
    const silent = await startHostileReceiver({ onRequest: () => arrived.resolve() });
    const endless = await startHostileReceiver({
      onRequest: write(`${head(200, "Content-Length: 99")}a`),
    });
    const { sender } = open();
    const sending = sender.send(orderTo(`http://127.0.0.1:${silent.port}/`));
    const half = await sender.send(orderTo(`http://127.0.0.1:${endless.port}/`));
    await arrived.promise;
    sender.close();
    expectOutcome(await sending, noResponse("interrupted"));
    expect(await bodyOf(half)).toBe("a");
    expectOutcome(await sender.send(orderTo(`http://127.0.0.1:${silent.port}/`)), noResponse("interrupted"));
    await Promise.all([silent.disconnected, endless.disconnected]);
    silent.close();
    endless.close();
  });

  test("rejects what cannot be written, and goes on", async () => {
    const receiver = startReceiver();
    const { sender } = open();
    const broken = { ...material, keyId: "a\r\nEvil: b" };
    // Not `expect(…).rejects`: it adds no handler, and the runtime then takes a late rejection for one that nobody handles.
    const refusal = await sender.send({ ...orderTo(receiver.url), material: broken }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(Error);
    expectOutcome(await sender.send(orderTo(receiver.url)), responded(204));
    await receiver.stop();
  });
});

test("a thread that a defect ends is replaced, and its attempts are to be made again", async () => {
  const receiver = startReceiver();
  const log: string[] = [];
  const allowTargets = ["no range"];
  const sender = createSenderThread({
    settings: () => ({ policy: { ...policy, allowTargets: allowTargets.splice(0) } }),
    clock,
    log: createLog({ level: "debug", format: "json", now: () => 0, out: (line) => void log.push(line) }),
    onConnection: () => {},
    onOwnTime: () => {},
  });
  opened.push(sender);
  const order = { delivery: dueDelivery({ url: receiver.url }), material: signerMaterial(), headers: [], now: 0 };
  expectOutcome(await sender.send(order), noResponse("connection_reset", "this server aborted the attempt"));
  // Without the lines of code that the runtime quotes.
  expect(log.map((line) => JSON.parse(line))).toMatchObject([
    {
      level: "error",
      event: "sender.failed",
      message: expect.stringMatching(/^StartupError: POSTRIDER_ALLOW_TARGETS: .{1,400}$/),
    },
  ]);
  expectOutcome(await sender.send(order), responded(204));
  await receiver.stop();
});
