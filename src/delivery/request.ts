import type { DueDelivery } from "../domain/delivery.ts";
import { traceHeaders } from "../domain/trace-context.ts";
import type { OwnHeaders } from "../domain/webhook-headers.ts";
import { ingestedAtMs } from "../lib/id.ts";
import { formatIso } from "../lib/iso-time.ts";
import { version } from "../version.ts";
import type { OutgoingRequest } from "./network/transport.ts";
import type { Sign } from "./recent-signatures.ts";
import { type SignerMaterial, sign } from "./signature.ts";

/** Rules, section 8: a label that takes more room than this is left out of the header. */
const longestLabelBytes = 1024;

/** The parts of a delivery that go into its request. */
export type Deliverable = Pick<
  DueDelivery,
  "url" | "eventId" | "tenantId" | "eventSeq" | "payload" | "trace" | "replayGroupId"
>;

/** A request together with the delivery it carries, for a transport that has to know whose it is. */
export interface DeliveryRequest<Delivery extends Deliverable = DueDelivery> extends OutgoingRequest {
  readonly body: Buffer;
  readonly delivery: Delivery;
}

/**
 * Builds the request of one attempt (specification, "Deliveries"): the payload's own bytes in an envelope without white
 * space, signed for the second in which it goes out, because Standard Webhooks signatures contain that time.
 * @param own the tenant's own headers
 * @param signEvent signs, or reuses what was signed for another webhook
 */
export function buildRequest<Delivery extends Deliverable>(
  delivery: Delivery,
  material: SignerMaterial,
  now: number,
  own: OwnHeaders = [],
  signEvent: Sign = sign,
): DeliveryRequest<Delivery> {
  const { eventId, tenantId, eventSeq, payload, trace, replayGroupId } = delivery;
  const ingestionTimestamp = formatIso(ingestedAtMs(eventSeq));
  const head = `{"eventId":"${eventId}","tenantId":"${tenantId}","ingestionTimestamp":"${ingestionTimestamp}","payload":`;
  const body = Buffer.allocUnsafe(head.length + payload.length + 1);
  body.write(head, 0, "latin1");
  body.set(payload, head.length);
  body[body.length - 1] = 0x7d; // }

  const timestampSeconds = Math.floor(now / 1000);
  const { serviceSignature, webhookSignature } = signEvent(material, { eventId, body, timestampSeconds });
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "User-Agent": `Postrider/${version}`,
    "Service-Event-Id": eventId,
    "Service-Signature": serviceSignature,
    "Service-Key-Id": material.keyId,
    "webhook-id": eventId,
    "webhook-timestamp": String(timestampSeconds),
    "webhook-signature": webhookSignature,
  };
  if (trace !== null) Object.assign(headers, traceHeaders(trace));
  const label = replayGroupId === null ? null : encodeLabel(replayGroupId);
  if (label !== null) headers["Service-Replay-Group"] = label;
  // None of them has the name of one of ours.
  for (const [name, value] of own) headers[name] = value;
  return { url: delivery.url, headers, body, delivery };
}

/** The label's UTF-8, percent-encoded outside printable ASCII and for `%`; null when it is too long for a header. */
export function encodeLabel(label: string): string | null {
  let encoded = "";
  for (const byte of Buffer.from(label, "utf8")) {
    const isPlain = byte > 0x20 && byte < 0x7f && byte !== 0x25;
    encoded += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    if (encoded.length > longestLabelBytes) return null;
  }
  return encoded;
}
