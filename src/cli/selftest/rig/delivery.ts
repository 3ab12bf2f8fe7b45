import { createHmac, verify } from "node:crypto";
import { ingestedAtMs, parseEventId } from "../../../lib/id.ts";
import { formatIso } from "../../../lib/iso-time.ts";
import type { Account } from "./account.ts";
import type { ReceivedEvent } from "./ledger.ts";
import type { Arrival } from "./receiver.ts";

/**
 * Checks a delivery against what is promised (specification, "Deliveries"): it is signed by a published key of the account,
 * and with the account's secret according to Standard Webhooks; its body is the four fields in order, without a byte of ours
 * between them.
 * @returns what it carries, or a description of what does not hold
 */
export function readDelivery(account: Account, { path, headers, body }: Arrival): ReceivedEvent | string {
  const eventId = headers.get("service-event-id") ?? "";
  const key = account.publicKeys.get(headers.get("service-key-id") ?? "");
  if (key === undefined) return `${eventId} names a signing key that is not published`;
  const signature = Buffer.from(headers.get("service-signature") ?? "", "base64");
  if (!verify(null, body, key, signature)) return `the signature of ${eventId} does not match its body`;
  const hmac = createHmac("sha256", account.signingSecret).update(`${eventId}.${headers.get("webhook-timestamp")}.`);
  const standard = `v1,${hmac.update(body).digest("base64")}`;
  if (headers.get("webhook-id") !== eventId || !headers.get("webhook-signature")?.split(" ").includes(standard)) {
    return `the Standard Webhooks signature of ${eventId} does not match`;
  }

  const seq = parseEventId(eventId)?.seq;
  if (seq === undefined) return `"${eventId}" is not an event id`;
  const head = `{"eventId":"${eventId}","tenantId":"${account.id}","ingestionTimestamp":"${formatIso(ingestedAtMs(seq))}","payload":`;
  if (body.toString("latin1", 0, head.length) !== head || body.at(-1) !== closingBrace) {
    return `the body of ${eventId} is not framed as a delivery to ${account.id}: ${body.toString("utf8", 0, 200)}`;
  }
  const label = decodeURIComponent(headers.get("service-replay-group") ?? "");
  return { account, path, eventId, payload: body.subarray(head.length, -1), label };
}

const closingBrace = "}".charCodeAt(0);
