import { sleep } from "../../lib/clock.ts";
import { type Cast, type Stage, setUp, verifySignatures } from "./cast.ts";
import { createDemoClient, pollEveryMs, usualPatienceMs } from "./client.ts";
import type { DemoNode } from "./nodes.ts";
import { signaturesInEach } from "./verify.ts";

export interface NodesStage extends Omit<Stage, "base"> {
  /** Two or more. One of them is killed along the way. */
  nodes: readonly DemoNode[];
}

interface NodesCast extends Cast {
  living: readonly DemoNode[];
}

/** How long the others may take to continue the work of a killed server: its lease, and some more for a busy machine. */
const takeoverPatienceMs = 60_000;

const slowEventType = "order.shipped";

/** How the receiver answers in this story: one type of event gets no answer the first time, so it stays under way for a while. */
export const nodesStatusFor = (eventType: string, nth: number): number | null =>
  eventType === slowEventType && nth === 1 ? null : 200;

const eventsEach = 2;
const eventsUnderWay = 3;

/**
 * One account, events through every server, and the death of one.
 * @returns what was done, in words
 * @throws Error when anything does not hold
 */
export async function tellNodesStory({ nodes, ...stage }: NodesStage): Promise<string> {
  const { narrator } = stage;
  const [first, victim] = nodes;
  if (first === undefined || victim === undefined) throw new Error("It takes two servers");

  narrator.chapter(`An account, made at ${first.name}`);
  const cast = { ...(await setUp({ ...stage, base: first.url })), living: nodes };
  await expectKnown(cast, first);

  narrator.chapter("Events, posted to one server after the other");
  const regular = await post(cast, nodes, "order.created", eventsEach);
  await expectDelivered(cast, regular, [200]);

  narrator.chapter(`${victim.name} is killed in the middle of its work`);
  const underWay = await post(cast, [victim], slowEventType, eventsUnderWay);
  await narrator.step("Received", async () => {
    await whenReceived(cast, underWay);
    return `the receiver has all ${underWay.length}, and takes its time to answer`;
  });
  await narrator.step("Killed", async () => {
    await victim.kill();
    return `kill -9 ${victim.name}, with ${underWay.length} deliveries under way`;
  });
  const living = nodes.filter((node) => node !== victim);
  const after = { ...cast, living };
  const meanwhile = await post(after, living, "order.created", eventsEach);
  await expectDelivered(after, meanwhile, [200]);
  await expectTakenOver(after, underWay, victim);

  narrator.chapter("What became of it all");
  await narrator.step("Servers", async () => {
    const listed = (await first.listed()).toSorted();
    if (listed.includes(victim.name)) throw new Error(`${victim.name} is still listed`);
    return `${inWords(listed)} ${listed.length === 1 ? "goes" : "go"} on; ${victim.name} has left the list`;
  });
  const all = [...regular, ...meanwhile, ...underWay];
  await narrator.step("Events", async () => {
    const answer = await clientOf(after, first).send("GET", "/v1/events/state/DELIVERED?size=1", 200, cast);
    const { total } = answer as { total: number };
    if (total !== all.length) throw new Error(`${total} of ${all.length} events are delivered`);
    return `${total} were accepted, ${total} are delivered, none is lost`;
  });
  const deliveries = await verifySignatures(cast, all);
  return (
    `${all.length} events delivered in ${deliveries} attempts by ${nodes.length} servers, one of them killed; ` +
    `${deliveries * signaturesInEach} signatures verified`
  );
}

const clientOf = ({ clock }: Cast, { url }: DemoNode) => createDemoClient(url, clock);

const inWords = (names: readonly string[]) => names.join(", ").replace(/, ([^,]*)$/, " and $1");
const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** What was saved at one server holds at all the others as soon as it has answered. */
async function expectKnown(cast: NodesCast, first: DemoNode): Promise<void> {
  const { narrator, living, receiver } = cast;
  const others = living.filter((node) => node !== first);
  await narrator.step("Known", async () => {
    for (const node of others) {
      const webhooks = (await clientOf(cast, node).send("GET", "/v1/tenants/webhooks", 200, cast)) as { url: string }[];
      if (webhooks[0]?.url !== receiver.url) throw new Error(`${node.name} does not know the webhook`);
    }
    return `session and webhook hold at ${inWords(others.map(({ name }) => name))} as well`;
  });
}

async function post(
  cast: NodesCast,
  nodes: readonly DemoNode[],
  eventType: string,
  each: number,
): Promise<readonly string[]> {
  const { narrator, apiKey } = cast;
  const { eventIds } = await narrator.step("Accepted", async () => {
    const eventIds: string[] = [];
    for (let nth = 0; nth < each; nth += 1) {
      for (const node of nodes) {
        const body = { payload: { event_type: eventType, order: 1001 + eventIds.length } };
        const answer = await clientOf(cast, node).send("POST", "/v1/ingest", 202, { token: apiKey, body });
        eventIds.push((answer as { eventId: string }).eventId);
      }
    }
    const by = nodes.length === 1 ? "" : `, ${each} each`;
    return { eventIds, said: `${plural(eventIds.length, "event")} by ${inWords(nodes.map(({ name }) => name))}${by}` };
  });
  return eventIds;
}

async function whenReceived({ receiver, clock }: Cast, eventIds: readonly string[]): Promise<void> {
  const deadline = clock.monotonicMs() + usualPatienceMs;
  const missing = () => eventIds.filter((id) => receiver.received(id).length === 0);
  while (missing().length > 0) {
    if (clock.monotonicMs() > deadline) throw new Error(`the receiver did not get ${missing()[0]}`);
    await sleep(clock, pollEveryMs);
  }
}

/** Each record is requested from a different server. */
async function expectDelivered(cast: NodesCast, eventIds: readonly string[], statuses: readonly number[]) {
  await cast.narrator.step("Delivered", async () => {
    await checkDelivered(cast, eventIds, statuses);
    return `all ${eventIds.length}, each on the first attempt`;
  });
}

async function expectTakenOver(cast: NodesCast, eventIds: readonly string[], victim: DemoNode): Promise<void> {
  const { narrator, living } = cast;
  narrator.note(
    "Lease",
    `${victim.name} might still be alive: what it had is its own until its lease of 20 s runs out`,
  );
  await narrator.step("Taken over", async () => {
    const taken = checkDelivered(cast, eventIds, [null, 200], takeoverPatienceMs);
    await narrator.waiting(`Waiting for the lease of ${victim.name} to run out`, taken);
    return `all ${eventIds.length} were delivered again and acknowledged, by ${inWords(living.map(({ name }) => name))}`;
  });
}

/** @param statuses what the receiver answered; null: nothing, because the sender died, so it could not log the attempt either */
async function checkDelivered(
  cast: NodesCast,
  eventIds: readonly string[],
  statuses: readonly (number | null)[],
  patienceMs = usualPatienceMs,
): Promise<void> {
  const { living, receiver, token } = cast;
  for (const [i, eventId] of eventIds.entries()) {
    const client = clientOf(cast, living[(i + 1) % living.length] as DemoNode);
    await client.whenState(eventId, "DELIVERED", token, patienceMs);
    const got = JSON.stringify(receiver.received(eventId).map(({ status }) => status));
    const due = JSON.stringify(statuses);
    if (got !== due) throw new Error(`the receiver answered ${got} instead of ${due}`);
  }
}
