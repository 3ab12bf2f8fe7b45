import { connect } from "node:net";
import { newId } from "../../../../src/lib/id.ts";
import type { Store } from "../../../../src/store/store.ts";
import { headOf, statusOf } from "../../../support/raw-peer.ts";
import { latestKey } from "../../../support/store-factory.ts";
import { type Attack, inParallel } from "./attack.ts";
import { type AttackTarget, count, type SeededAccount, type Tally } from "./target.ts";

const connections = 12;
const events = 1_000;
const largestBytes = 256 * 1024 - 100;
const keptDeliveries = 100;
const attempts = 1_000;
const bodyBytes = 4 * 1024;
const label = "x".repeat(60_000);
const webhookUrl = "https://example.com/hook";

/** The largest events, an inbox full of them, and an event that was replayed so often with a label of 60 KB. */
async function fill(store: Store, [owner]: readonly SeededAccount[]): Promise<void> {
  if (!owner) return;
  const payload = Buffer.from(`{"x":"${"x".repeat(largestBytes)}"}`);
  const ofOwner = { tenantKey: owner.key, apiKeyId: await latestKey(store, owner.key) };
  await store.replaceWebhooks(
    owner.key,
    { webhooks: [{ id: newId("wh"), url: webhookUrl, name: "" }], limit: 1 },
    Date.now(),
  );
  const [eventId = ""] = (
    await store.acceptEvents({ ...ofOwner, events: [{ payload: Buffer.from("{}"), type: null }] })
  ).eventIds;
  for (let n = 0; n < attempts; n += 1) {
    const { webhooks } = await store.replayEvent(
      owner.key,
      { id: newId("rpl"), kind: "single", label, eventId },
      Date.now(),
    );
    const due = webhooks[0] ? (await store.claim(webhooks[0], Date.now() + 1_000, 1)).due : [];
    const [delivery] = due;
    if (!delivery) throw new Error("The replayed event has no delivery.");
    await store.settle({
      delivery,
      attempt: {
        startedAt: Date.now(),
        durationMs: 1,
        statusCode: 200,
        error: null,
        errorCode: null,
        responseBody: Buffer.alloc(bodyBytes, "a"),
        answerHead: null,
      },
      next: { kind: "delivered" },
    });
  }
  await store.replaceWebhooks(owner.key, { webhooks: [], limit: 1 }, Date.now());
  for (let n = 0; n < events; n += 20) {
    await store.acceptEvents({ ...ofOwner, events: Array.from({ length: 20 }, () => ({ payload, type: null })) });
  }
  for (let n = 0; n < keptDeliveries; n += 1) {
    const received = { id: newId("ibx"), receivedAt: Date.now(), eventId, headers: { Host: "example.com" } };
    const delivered = { ...received, body: payload, answeredStatus: 204, isTest: false };
    await store.keepInboxDelivery(owner.key, delivered, keptDeliveries);
  }
}

/** The oldest record of all is that of the replayed event. */
async function findPaths({ port, accounts }: AttackTarget): Promise<string[]> {
  const Authorization = `Bearer ${accounts[0]?.session}`;
  const list = `http://127.0.0.1:${port}/v1/events?size=1&page=${events}`;
  const body = await fetch(list, { headers: { Authorization } }).then((response) => response.json());
  const { eventId } = (body as { events: { eventId: string }[] }).events[0] ?? { eventId: "" };
  return [
    "/v1/events?size=1000",
    `/v1/events/${eventId}/attempts?size=1000`,
    "/v1/inbox?size=100",
    "/v1/events?size=1000",
    "/v1/events/replays?size=1000",
    "/v1/events/state/FAILED?size=1000",
  ];
}

/** Asks once over a connection of its own and counts what came of it; a whole answer by its status. */
async function ask(
  { port, accounts }: AttackTarget,
  tally: Tally,
  path: string,
  reads: boolean,
  isOver: () => boolean,
) {
  const socket = connect(port, "127.0.0.1");
  const Authorization = `Bearer ${accounts[0]?.session}`;
  let head = "";
  let tail = "";
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write(`${headOf("GET", path, { Authorization, Connection: "close" })}\r\n`);
  if (!reads) socket.pause();
  socket.on("data", (bytes) => {
    if (head.length < 500) head += bytes.toString("latin1", 0, 500);
    tail = bytes.toString("latin1", Math.max(0, bytes.length - 5));
    if (isOver()) socket.destroy();
  });
  const timer = setInterval(() => {
    if (isOver()) socket.destroy();
    // Whether it was cut off shows only to whoever reads, or writes.
    else if (!reads) socket.write("\r\n");
  }, 1_000);
  await closed;
  clearInterval(timer);
  if (isOver()) return;
  if (!reads) count(tally, "unread answer cut");
  else if (tail === "0\r\n\r\n" || /^content-length:/im.test(head)) count(tally, statusOf(head));
  else count(tally, "answer cut");
}

const lists = `1,000 events of 256 KiB, ${attempts} attempts with labels of 60 KB, an inbox of 100 times 256 KiB`;
const bounds = {
  accounts: 1,
  seed: fill,
  ingestionP99Ms: 50,
  growthBytes: 100e6,
  growthReason: "an answer holds about 1 MiB of what it lists, however long the list is",
};

export const answerAttacks: readonly Attack[] = [
  {
    ...bounds,
    name: "large-answers",
    load: `${connections} connections read the longest lists over and over: ${lists}`,
    expected: [200, 503],
    async run(target, tally, isOver) {
      const paths = await findPaths(target);
      await inParallel(connections, isOver, (n) =>
        ask(target, tally, paths[n % paths.length] ?? "", true, isOver).then(() => {}),
      );
    },
  },
  {
    ...bounds,
    name: "unread-answers",
    load: `${connections} connections ask for the longest lists and never read: ${lists}`,
    seconds: 45,
    expected: ["unread answer cut"],
    async run(target, tally, isOver) {
      const paths = await findPaths(target);
      await inParallel(connections, isOver, (n) => ask(target, tally, paths[n % paths.length] ?? "", false, isOver));
    },
  },
];
