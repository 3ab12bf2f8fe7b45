import { type Cast, type Stage, setUp, verifySignatures } from "./cast.ts";
import { faultsOf, signaturesInEach } from "./verify.ts";

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

/** Waits for the record's state, then checks it against the log of attempts and what the receiver got. */
async function expectOutcome(
  cast: Cast,
  eventId: string,
  state: "DELIVERED" | "FAILED",
  statuses: readonly number[],
): Promise<void> {
  const { client, narrator, receiver, token } = cast;
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
  await verifySignatures(cast, [eventId]);
}

/** Changing one letter of a body must break all three signatures: a check that accepts anything would prove nothing. */
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
