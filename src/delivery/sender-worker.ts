import { createPrivateKey } from "node:crypto";
import { systemClock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Interruption, InterruptionListener } from "../lib/interruption.ts";
import { NumberedValues } from "../lib/slots.ts";
import { type AddressPolicy, createAddressPolicy } from "./network/address.ts";
import { createSurroundings } from "./network/surroundings.ts";
import { type BodyRead, createTransport, type Outcome, type Transport } from "./network/transport.ts";
import { createRecentSignatures } from "./recent-signatures.ts";
import { buildRequest } from "./request.ts";
import type {
  PackedAnswer,
  PackedBytes,
  PackedOrder,
  PackedSigner,
  SendBatch,
  SenderMessage,
  SenderNews,
} from "./sender-messages.ts";
import type { SignerMaterial } from "./signature.ts";

/** The other end of `sender-thread.ts`. The build lists this file as a separate entry point. */
declare const self: Worker;

let transport: Transport | null = null;
let policy: AddressPolicy | null = null;
const signers = new Map<number, SignerMaterial>();
const sign = createRecentSignatures();
const underWay = new NumberedValues<Recall>();

/** Recalls an order. Its exchange is the only listener, so making one takes a tenth of the time of an `AbortController`. */
class Recall implements Interruption {
  aborted = false;
  private listener: InterruptionListener | null = null;

  addEventListener(_type: "abort", listener: InterruptionListener): void {
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

interface Due {
  readonly order: PackedOrder;
  readonly material: SignerMaterial | undefined;
  readonly payload: Uint8Array;
  readonly recall: Recall;
}

/**
 * How many requests are made in a row, some 45 µs each, before answers are read. When all 500 that can be under way were made
 * in a row, they stayed bunched together from then on, there and back, and each thread waited while the other worked.
 */
const mostAtOnce = 32;
const due: Due[] = [];
let isSending = false;

/** Replies since the last news; their bodies are looked at when the news goes out: most have ended by then. */
let outcomes: { id: number; outcome: Outcome }[] = [];
let failures: PackedAnswer[] = [];
let bodies: { id: number; body: PackedBytes }[] = [];
let connections = { fresh: 0, kept: 0 };
let isTelling = false;
/** How long this thread was busy, in ms: since the last news, and in the interval before it. */
let busyMs = 0;
let busyBeforeMs = 0;
let answeringSince = 0;

self.onmessage = ({ data }: MessageEvent<SenderMessage>) => {
  if (data.kind === "send") send(data);
  else if (data.kind === "signers") for (const signer of data.signers) signers.set(signer.number, unpack(signer));
  else if (data.kind === "forget") for (const number of data.signers) signers.delete(number);
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

function send({ orders, payloads }: SendBatch): void {
  let start = 0;
  for (const order of JSON.parse(orders) as PackedOrder[]) {
    const material = signers.get(order.signer);
    const recall = new Recall();
    underWay.put(order.id, recall);
    due.push({ order, material, payload: new Uint8Array(payloads, start, order.payloadEnd - start), recall });
    start = order.payloadEnd;
  }
  if (!isSending) sendSome();
}

/** Makes one turn's worth of what is due; the rest follows after the answers that have arrived in the meantime. */
function sendSome(): void {
  const startedAt = systemClock.monotonicMs();
  for (const one of due.splice(0, mostAtOnce)) void attempt(one);
  isSending = due.length > 0;
  if (isSending) setImmediate(sendSome);
  busyMs += systemClock.monotonicMs() - startedAt;
}

function unpack({ keyId, privateKey, secrets }: PackedSigner): SignerMaterial {
  const key = createPrivateKey({ key: Buffer.from(privateKey), format: "der", type: "pkcs8" });
  return { keyId, privateKey: key, secrets: secrets.map((secret) => Buffer.from(secret)) };
}

async function attempt({ order, material, payload, recall }: Due): Promise<void> {
  const { id } = order;
  try {
    if (!material || !transport) throw new Error("The sender has no signing material");
    const { url, eventId, tenantId, eventSeq, trace = null, replayGroupId = null, headers, now } = order;
    const delivery = { url, eventId, tenantId, eventSeq, trace, replayGroupId, payload };
    const outcome = await transport.send(buildRequest(delivery, material, now, headers, sign), recall);
    outcomes.push({ id, outcome });
  } catch (error) {
    failures.push({ id, kind: "failed", message: messageOf(error) });
  }
  tellSoon();
}

/** Reports at the end of this turn of the event loop, for everything that came in during it. */
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
  self.postMessage(JSON.stringify(news));
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
      bodies.push({ id, body: packed(body) });
      tellSoon();
    });
  }
  const { ended } = body;
  return { id, kind: "responded", status, retryAfter, head, durationMs, body: packed(body), bodyEnded: ended };
}

function packed(body: BodyRead): PackedBytes {
  const { buffer, byteOffset, length } = body.received();
  return length === 0 ? "" : Buffer.from(buffer, byteOffset, length).toString("latin1");
}
