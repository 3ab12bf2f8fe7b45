import { readFileSync } from "node:fs";
import http from "node:http";
import { Elysia } from "elysia";
import { createAddressPolicy } from "../../../src/delivery/network/address.ts";
import { createTransport } from "../../../src/delivery/network/transport.ts";
import { readBody } from "../../../src/http/body.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { encodeEventId, nextEventSeq, randomTail } from "../../../src/lib/id.ts";
import { receiverPath, tenantCount } from "./event.ts";

/**
 * The bare relay that Postrider is measured against: the same listener, the same way to take a body, and in between a queue in
 * memory. Nothing is stored, counted, signed, tried again or shown.
 *
 * It delivers by `node:http` ("node"), as anybody would: a measure that does not move when Postrider's transport changes. With
 * "own" it has that transport too.
 *
 * Usage: bun bare-relay.ts <receiver port> <own|node>. Prints its own port. The API key of tenant n is "bare_<n>". Other
 * receivers, one for each tenant: BARE_RELAY_URLS, and Postrider's settings of the name server and the certificates.
 */
const maxBodyBytes = 256 * 1024;
/** With 64 connections that wait for their answers, seldom more than 64 are needed; 128 and 2,000 deliver the same. */
const maxInFlight = 128;

const receiverPort = Number(process.argv[2]);
const ownReceivers = Array.from(
  { length: tenantCount },
  (_, n) => `http://127.0.0.1:${receiverPort}${receiverPath(n)}`,
);
const { BARE_RELAY_URLS, POSTRIDER_DNS_SERVERS, POSTRIDER_EXTRA_CA_FILE } = process.env;
const urls: readonly string[] = BARE_RELAY_URLS === undefined ? ownReceivers : JSON.parse(BARE_RELAY_URLS);
const webhooks = new Map(urls.map((url, n) => [`Bearer bare_${n}`, url]));

const policy = createAddressPolicy({ localMode: false, allowTargets: ["127.0.0.0/8"], ownListeners: [] });
const transport = createTransport({
  policy,
  clock: systemClock,
  ...(POSTRIDER_DNS_SERVERS !== undefined && { dnsServers: [POSTRIDER_DNS_SERVERS] }),
  ...(POSTRIDER_EXTRA_CA_FILE !== undefined && { extraCa: readFileSync(POSTRIDER_EXTRA_CA_FILE, "utf8") }),
});
const agent = new http.Agent({ keepAlive: true, scheduling: "lifo", maxFreeSockets: 256 });
const deliver = process.argv[3] === "node" ? sendByNode : sendByOwn;
const headers = { "Content-Type": "application/json" };

interface Waiting {
  url: string;
  body: Uint8Array;
}

/** First in, first out; the array is cut when half of it has gone. */
let queue: Waiting[] = [];
let first = 0;
let inFlight = 0;

function dispatch(): void {
  while (inFlight < maxInFlight && first < queue.length) {
    const { url, body } = queue[first++] as Waiting;
    inFlight++;
    void deliver(url, body).then(() => {
      inFlight--;
      dispatch();
    });
  }
  if (first > 1024 && first * 2 > queue.length) {
    queue = queue.slice(first);
    first = 0;
  }
}

async function sendByOwn(url: string, body: Uint8Array): Promise<void> {
  await transport.send({ url, headers, body });
}

function sendByNode(url: string, body: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const all = { ...headers, "Content-Length": body.length };
    const request = http.request(url, { method: "POST", agent, headers: all }, (response) => {
      response.on("end", resolve).resume();
    });
    request.on("error", () => resolve());
    request.end(body);
  });
}

const wrapperBytes = '{"payload":'.length;
let lastSeq = 0;

const app = new Elysia()
  .post(
    "/v1/ingest",
    async ({ request }) => {
      const url = webhooks.get(request.headers.get("authorization") ?? "");
      if (url === undefined) return Response.json({ message: "Unknown API key." }, { status: 401 });
      const body = await readBody(request, maxBodyBytes, { grow: () => {} });
      queue.push({ url, body: body.subarray(wrapperBytes, body.length - 1) });
      dispatch();
      lastSeq = nextEventSeq(lastSeq, Date.now());
      return Response.json({ status: "accepted", eventId: encodeEventId(lastSeq, randomTail()) }, { status: 202 });
    },
    { parse: "none" },
  )
  .listen({ hostname: "127.0.0.1", port: 0 });

process.stdout.write(`${app.server?.port}\n`);
// The bench holds the other end: when it is gone, so is this.
process.stdin.on("end", () => process.exit(0)).resume();
