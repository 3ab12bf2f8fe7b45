import type { Clock } from "../../lib/clock.ts";
import { createDemoClient, type DemoClient } from "./client.ts";
import type { Narrator } from "./narrator.ts";
import type { DemoReceiver } from "./receiver.ts";
import { faultsOf, readKeySet, signaturesInEach, type VerifyingKeys } from "./verify.ts";

export interface Stage {
  base: string;
  receiver: DemoReceiver;
  narrator: Narrator;
  clock: Clock;
}

interface Cast extends Stage {
  client: DemoClient;
  token: string;
  apiKey: string;
  keys: VerifyingKeys;
}

/** An account, three events, one replay. @returns what was done, in words @throws Error when anything does not hold */
export async function tellStory(stage: Stage): Promise<string> {
  const cast = await setUp(stage);
  const { narrator } = cast;

  narrator.chapter("An event, delivered");
  const created = await send(cast, "order.created", 1);
  await expectOutcome(cast, created, "DELIVERED", [200]);

  narrator.chapter("A receiver that is briefly down");
  const paid = await send(cast, "order.paid", 2);
  await expectOutcome(cast, paid, "DELIVERED", [503, 503, 200]);

  narrator.chapter("A receiver that refuses, and a replay once it is fixed");
  const cancelled = await send(cast, "order.cancelled", 3);
  await expectOutcome(cast, cancelled, "FAILED", [400]);
  await replay(cast, cancelled);
  await expectOutcome(cast, cancelled, "DELIVERED", [400, 200]);

  narrator.chapter("A forged delivery");
  await refuseForgery(cast, created);
  const deliveries = [created, paid, cancelled].flatMap((id) => cast.receiver.received(id)).length;
  return `3 events delivered in ${deliveries} attempts, ${deliveries * signaturesInEach} signatures verified`;
}

async function setUp(stage: Stage): Promise<Cast> {
  const { base, receiver, narrator, clock } = stage;
  const client = createDemoClient(base, clock);

  const account = await narrator.step("Account", async () => {
    const { tenant_id: id, password } = (await client.send("POST", "/v1/tenants", 201)) as Record<string, string>;
    if (id === undefined || password === undefined) throw new Error("POST /v1/tenants returned no id or no password");
    return { id, password, said: `${id}, free tier, no questions asked` };
  });
  const { token } = await narrator.step("Session", async () => {
    const body = { loginId: account.id, password: account.password };
    const { token = "" } = (await client.send("POST", "/v1/tenants/auth/login", 200, { body })) as { token?: string };
    return { token, said: "logged in with the generated password" };
  });
  const { apiKey } = await narrator.step("API key", async () => {
    const [first] = (await client.send("GET", "/v1/tenants/api-keys", 200, { token })) as { key: string }[];
    const apiKey = first?.key ?? "";
    return { apiKey, said: `${apiKey.slice(0, 11)}…, for ingestion only` };
  });
  await narrator.step("Webhook", async () => {
    const body = [{ webhook_url: receiver.url, name: "Orders" }];
    await client.send("PUT", "/v1/tenants/webhooks", 200, { token, body });
    return receiver.url;
  });
  const { keys } = await narrator.step("Keys", async () => {
    const publicKeys = readKeySet(await client.send("GET", `/v1/tenants/${account.id}/jwks.json`, 200));
    const answer = await client.send("GET", "/v1/tenants/signing-secret", 200, { token });
    const { secret } = answer as { secret: string };
    return { keys: { publicKeys, secret }, said: "the public Ed25519 key and the whsec_ secret, for verification" };
  });
  return { ...stage, client, token, apiKey, keys };
}

async function send({ client, narrator, apiKey }: Cast, eventType: string, order: number): Promise<string> {
  const body = { payload: { event_type: eventType, order: 1000 + order, amount: "19.90", currency: "EUR" } };
  const { eventId } = await narrator.step("Accepted", async () => {
    const { eventId } = (await client.send("POST", "/v1/ingest", 202, { token: apiKey, body })) as { eventId: string };
    return { eventId, said: `${eventType} as ${eventId}` };
  });
  return eventId;
}

async function replay({ client, narrator, token }: Cast, eventId: string): Promise<void> {
  await narrator.step("Replayed", async () => {
    const body = { eventId, replayGroupId: "demo" };
    await client.send("POST", "/v1/events/replays/single", 202, { token, body });
    return 'POST /v1/events/replays/single, replay group "demo"';
  });
}

/** Waits for the record's state, and compares it, the log of attempts and what the receiver got. */
async function expectOutcome(
  { client, narrator, receiver, token, keys, clock }: Cast,
  eventId: string,
  state: "DELIVERED" | "FAILED",
  statuses: readonly number[],
): Promise<void> {
  await narrator.step(state === "DELIVERED" ? "Delivered" : "Failed", async () => {
    const record = await client.whenState(eventId, state, token);
    const answer = await client.send("GET", `/v1/events/${eventId}/attempts`, 200, { token });
    const logged = (answer as { statusCode: number | null }[]).map(({ statusCode }) => statusCode);
    const got = receiver.received(eventId).map(({ status }) => status);
    if (`${logged}` !== `${statuses}`) throw new Error(`the attempt log has ${logged} instead of ${statuses}`);
    if (`${got}` !== `${statuses}`) throw new Error(`the receiver answered ${got} instead of ${statuses}`);
    if (record.errorReason !== null) return `${record.errorReason}; not retried`;
    return statuses.length === 1 ? `${statuses}, on the first attempt` : `attempts ${statuses.join(", then ")}`;
  });
  await narrator.step("Signatures", () => {
    const all = receiver.received(eventId);
    const faults = all.flatMap((each) => faultsOf(each, keys, clock.now()));
    if (faults.length > 0) throw new Error(faults.join("; "));
    return `Service-Signature, v1 and v1a are valid on ${all.length === 1 ? "the delivery" : `all ${all.length} deliveries`}`;
  });
}

/** One letter changed in a body must spoil all three signatures: a check that accepts anything would prove nothing. */
async function refuseForgery({ narrator, receiver, keys, clock }: Cast, eventId: string): Promise<void> {
  await narrator.step("Forgery", () => {
    const [original] = receiver.received(eventId);
    if (original === undefined) throw new Error("the receiver got nothing");
    const body = Buffer.from(Buffer.from(original.body).toString("utf8").replace("19.90", "19.91"));
    const spoilt = faultsOf({ ...original, body }, keys, clock.now());
    if (spoilt.length !== signaturesInEach) throw new Error(`an altered body passes: ${spoilt.join("; ")}`);
    return "a body with one digit changed fails all three signatures";
  });
}
