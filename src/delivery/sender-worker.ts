import { createPrivateKey } from "node:crypto";
import { systemClock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import { type AddressPolicy, createAddressPolicy } from "./network/address.ts";
import { createSurroundings } from "./network/surroundings.ts";
import { createTransport, type Interruption, type Outcome, type Transport } from "./network/transport.ts";
import { buildRequest } from "./request.ts";
import type {
  PackedAnswer,
  PackedOrder,
  PackedSigner,
  SendBatch,
  SenderMessage,
  SenderNews,
} from "./sender-messages.ts";
import type { SignerMaterial } from "./signature.ts";

/** The other end of `sender-thread.ts`. The build names this file as an entry point of its own. */
declare const self: Worker;

let transport: Transport | null = null;
let policy: AddressPolicy | null = null;
const signers = new Map<number, SignerMaterial>();
const underWay = new Map<number, Recall>();

/** Calls an order back. Its exchange is the only listener. */
class Recall implements Interruption {
  aborted = false;
  private listener: { handleEvent(): void } | null = null;

  addEventListener(_type: "abort", listener: { handleEvent(): void }): void {
    this.listener = listener;
  }

  removeEventListener(): void {
    this.listener = null;
  }

  abort(): void {
    this.aborted = true;
    this.listener?.handleEvent();
  }
}

/** Replies since the last news; their bodies are looked at when the news goes out: most have ended by then. */
let outcomes: { id: number; outcome: Outcome }[] = [];
let failures: PackedAnswer[] = [];
let bodies: { id: number; body: Uint8Array }[] = [];
let connections = { fresh: 0, kept: 0 };
let isTelling = false;
/** Of this thread, in ms, since the last news, and between the two before. */
let busyMs = 0;
let busyBeforeMs = 0;
let answeringSince = 0;

self.onmessage = ({ data }: MessageEvent<SenderMessage>) => {
  if (data.kind === "send") send(data);
  else if (data.kind === "abort") underWay.get(data.id)?.abort();
  else if (data.kind === "avoid") policy?.avoid(data.ownListeners);
  else if (data.kind === "close") close();
  else {
    const { policy: policyOptions, ...settings } = data.settings;
    const surroundings = createSurroundings({ ...settings, clock: systemClock });
    policy = createAddressPolicy(policyOptions, surroundings);
    transport = createTransport({
      ...settings,
      policy,
      clock: systemClock,
      onConnection: (reused) => void connections[reused ? "kept" : "fresh"]++,
    });
  }
};

function close(): void {
  transport?.close();
  process.exit();
}

function send({ signers: added, orders, payloads, forgotten }: SendBatch): void {
  for (const signer of added) signers.set(signer.number, unpack(signer));
  const startedAt = systemClock.monotonicMs();
  let start = 0;
  for (const order of orders) {
    void attempt(order, new Uint8Array(payloads, start, order.payloadEnd - start));
    start = order.payloadEnd;
  }
  for (const number of forgotten) signers.delete(number);
  busyMs += systemClock.monotonicMs() - startedAt;
}

function unpack({ keyId, privateKey, secrets }: PackedSigner): SignerMaterial {
  const key = createPrivateKey({ key: Buffer.from(privateKey), format: "der", type: "pkcs8" });
  return { keyId, privateKey: key, secrets: secrets.map((secret) => Buffer.from(secret)) };
}

async function attempt(order: PackedOrder, payload: Uint8Array): Promise<void> {
  const { id } = order;
  const recall = new Recall();
  underWay.set(id, recall);
  try {
    const material = signers.get(order.signer);
    if (!material || !transport) throw new Error("The sender has no signing material");
    const outcome = await transport.send(
      buildRequest({ ...order, payload }, material, order.now, order.headers),
      recall,
    );
    outcomes.push({ id, outcome });
  } catch (error) {
    failures.push({ id, kind: "failed", message: messageOf(error) });
  }
  tellSoon();
}

/** At the end of this turn of the event loop, for all that came in it. */
function tellSoon(): void {
  if (isTelling) return;
  isTelling = true;
  answeringSince = systemClock.monotonicMs();
  setImmediate(tell);
}

function tell(): void {
  isTelling = false;
  const answers: PackedAnswer[] = failures;
  for (const { id, outcome } of outcomes) answers.push(pack(id, outcome));
  for (const { id } of answers) if (!waiting.has(id)) underWay.delete(id);
  busyMs += systemClock.monotonicMs() - answeringSince;
  const news: SenderNews = { answers, bodies, connections, busyMs: busyBeforeMs + busyMs };
  outcomes = [];
  failures = [];
  bodies = [];
  connections = { fresh: 0, kept: 0 };
  busyBeforeMs = busyMs;
  busyMs = 0;
  self.postMessage(news);
}

/** Attempts whose body is still coming. */
const waiting = new Set<number>();

function pack(id: number, outcome: Outcome): PackedAnswer {
  const { durationMs } = outcome;
  if (outcome.kind === "no-response") {
    return { id, kind: "no-response", cause: outcome.cause, detail: outcome.detail, durationMs };
  }
  const { status, retryAfter, head, body } = outcome;
  if (!body.ended) {
    waiting.add(id);
    void body.done.then(() => {
      waiting.delete(id);
      underWay.delete(id);
      bodies.push({ id, body: body.received() });
      tellSoon();
    });
  }
  return { id, kind: "responded", status, retryAfter, head, durationMs, body: body.received(), bodyEnded: body.ended };
}
