import { createHmac, timingSafeEqual } from "node:crypto";
import nacl from "tweetnacl";
import { secretBytes } from "../../delivery/signature.ts";
import type { Received } from "./receiver.ts";

/**
 * Verifies a delivery as a receiver would: from what is published, and with a different Ed25519 implementation (tweetnacl)
 * than the one that signed it. Returns what does not hold; nothing when everything does.
 */
export interface VerifyingKeys {
  /** The tenant's JWK set: `kid` → the 32 bytes of the public key. */
  readonly publicKeys: ReadonlyMap<string, Uint8Array>;
  /** `whsec_…` */
  readonly secret: string;
}

/** An older Standard Webhooks signature is refused as a replay. */
const toleranceSeconds = 300;

export function faultsOf(
  { headers, body }: Pick<Received, "headers" | "body">,
  keys: VerifyingKeys,
  now: number,
): string[] {
  const header = (name: string) => headers.get(name) ?? "";
  const key = keys.publicKeys.get(header("service-key-id"));
  if (key === undefined) return ["Service-Key-Id names no published key"];

  const timestamp = header("webhook-timestamp");
  const content = Buffer.concat([Buffer.from(`${header("webhook-id")}.${timestamp}.`), body]);
  const signatures = header("webhook-signature").split(" ");
  const mac = createHmac("sha256", secretBytes(keys.secret)).update(content).digest();
  const envelope = JSON.parse(new TextDecoder().decode(body)) as { eventId?: string };

  const checks: readonly [fault: string, holds: boolean][] = [
    ["Service-Signature does not match", isSigned(body, header("service-signature"), key)],
    ["webhook-signature v1 does not match", valuesOf(signatures, "v1").some((value) => isEqual(value, mac))],
    [
      "webhook-signature v1a does not match",
      valuesOf(signatures, "v1a").some((value) => isSigned(content, value, key)),
    ],
    ["webhook-timestamp is not current", Math.abs(now / 1000 - Number(timestamp)) <= toleranceSeconds],
    ["webhook-id is not the event id", header("webhook-id") === header("service-event-id")],
    ["the body names another event", envelope.eventId === header("service-event-id")],
  ];
  return checks.filter(([, holds]) => !holds).map(([fault]) => fault);
}

/** Signatures in each delivery: `Service-Signature`, v1 and v1a. */
export const signaturesInEach = 3;

/** A JWK set (RFC 8037) as a map. */
export function readKeySet(json: unknown): Map<string, Uint8Array> {
  const { keys } = json as { keys: { kid: string; x: string }[] };
  return new Map(keys.map(({ kid, x }) => [kid, Buffer.from(x, "base64url")]));
}

const valuesOf = (signatures: readonly string[], scheme: string) =>
  signatures.filter((each) => each.startsWith(`${scheme},`)).map((each) => each.slice(scheme.length + 1));

function isSigned(bytes: Uint8Array, signature: string, key: Uint8Array): boolean {
  const raw = Buffer.from(signature, "base64");
  // tweetnacl wants plain byte arrays, and throws on a signature of a different length.
  return raw.length === nacl.sign.signatureLength && nacl.sign.detached.verify(new Uint8Array(bytes), raw, key);
}

function isEqual(given: string, mac: Buffer): boolean {
  const raw = Buffer.from(given, "base64");
  return raw.length === mac.length && timingSafeEqual(raw, mac);
}
