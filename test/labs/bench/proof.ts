import { createPublicKey, verify } from "node:crypto";
import { createIngestRequest } from "./event.ts";
import type { Receiver } from "./receiver.ts";
import type { Api, Tenant } from "./tenants.ts";

/**
 * Shows with one event that everything is on: signed by the tenant's published key, logged as an attempt, shown as
 * delivered with the very payload. A bench of a server that leaves something out would compare nothing.
 */
export async function proveEverythingIsOn(api: Api, tenant: Tenant, receiver: Receiver): Promise<void> {
  const arrival = receiver.nextDelivery();
  const port = Number(new URL(api.base).port);
  const { bytes } = createIngestRequest(0, port, tenant.apiKey);
  const body = bytes.toString("utf8", bytes.indexOf("\r\n\r\n") + 4);
  const { eventId } = await post<{ eventId: string }>(`${api.base}/v1/ingest`, tenant.apiKey, body);

  const delivery = await arrival;
  const headLength = delivery.indexOf("\r\n\r\n");
  const head = delivery.slice(0, headLength);
  const delivered = delivery.slice(headLength + 4);
  const payload = body.slice('{"payload":'.length, -1);
  if (!delivered.endsWith(`"payload":${payload}}`)) throw new Error(`The payload was changed: ${delivered}`);
  await checkSignature(api, tenant, head, delivered);
  await checkRecord(api, tenant, eventId);
}

async function post<T>(url: string, token: string, body: string): Promise<T> {
  const response = await fetch(url, { method: "POST", headers: { Authorization: `Bearer ${token}` }, body });
  const text = await response.text();
  if (response.status !== 202) throw new Error(`POST ${url}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

type Jwk = { kid: string; kty: string; crv: string; x: string };

async function checkSignature(api: Api, tenant: Tenant, head: string, body: string): Promise<void> {
  const header = (name: string) => new RegExp(`^${name}: (.*?)\r?$`, "im").exec(head)?.[1];
  const { keys } = await api<{ keys: Jwk[] }>("GET", `/v1/tenants/${tenant.id}/jwks.json`, undefined);
  const key = keys.find(({ kid }) => kid === header("service-key-id"));
  if (key === undefined) throw new Error(`The delivery names no published key:\n${head}`);
  const publicKey = createPublicKey({ key, format: "jwk" });
  const signature = Buffer.from(header("service-signature") ?? "", "base64");
  if (!verify(null, Buffer.from(body), publicKey, signature)) throw new Error(`Service-Signature is wrong:\n${head}`);
  const standard = header("webhook-signature") ?? "";
  if (!/(^| )v1,/.test(standard) || !/(^| )v1a,/.test(standard)) {
    throw new Error(`webhook-signature lacks v1 or v1a:\n${head}`);
  }
}

const settleMs = 5_000;
const pollMs = 20;

async function checkRecord(api: Api, tenant: Tenant, eventId: string): Promise<void> {
  const endMs = performance.now() + settleMs;
  for (;;) {
    const [record] = await api<{ state: string }[]>("GET", `/v1/events/${eventId}`, tenant.session);
    if (record?.state === "DELIVERED") break;
    if (performance.now() > endMs) throw new Error(`${eventId} was received and is still ${record?.state}.`);
    await Bun.sleep(pollMs);
  }
  const log = await api<{ statusCode: number }[]>("GET", `/v1/events/${eventId}/attempts`, tenant.session);
  if (log.length !== 1 || log[0]?.statusCode !== 204) throw new Error(`Attempts of ${eventId}: ${JSON.stringify(log)}`);
}
