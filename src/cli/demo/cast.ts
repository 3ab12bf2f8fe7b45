import type { Clock } from "../../lib/clock.ts";
import { createDemoClient, type DemoClient } from "./client.ts";
import type { Narrator } from "./narrator.ts";
import type { DemoReceiver } from "./receiver.ts";
import { faultsOf, readKeySet, type VerifyingKeys } from "./verify.ts";

export interface Stage {
  base: string;
  receiver: DemoReceiver;
  narrator: Narrator;
  clock: Clock;
}

/** The cast of a story: an account with a webhook, and everything needed to verify what reaches it. */
export interface Cast extends Stage {
  client: DemoClient;
  token: string;
  apiKey: string;
  keys: VerifyingKeys;
}

export async function setUp(stage: Stage): Promise<Cast> {
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

/** @throws Error when a signature on a delivery of one of the events does not hold @returns how many deliveries there were */
export async function verifySignatures(
  { narrator, receiver, keys, clock }: Cast,
  eventIds: readonly string[],
): Promise<number> {
  const all = eventIds.flatMap((id) => receiver.received(id));
  await narrator.step("Signatures", () => {
    const faults = all.flatMap((each) => faultsOf(each, keys, clock.now()));
    if (faults.length > 0) throw new Error(faults.join("; "));
    return `Service-Signature, v1 and v1a are valid on ${all.length === 1 ? "the delivery" : `all ${all.length} deliveries`}`;
  });
  return all.length;
}
