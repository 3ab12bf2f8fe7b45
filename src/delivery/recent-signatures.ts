import { type Signatures, type SignedContent, type SignerMaterial, sign } from "./signature.ts";

/** What is signed, and of which event it is. */
export interface SignedEvent extends SignedContent {
  readonly eventSeq: number;
}

export type Sign = (material: SignerMaterial, content: SignedEvent) => Signatures;

/**
 * Places for events. Deliveries of one event that can go at once go soon after each other: 509 places spared no more than these. A
 * prime number spreads sequence numbers, whose low digits count the events of a millisecond.
 */
const places = 127;

interface Signed {
  readonly eventSeq: number;
  readonly material: SignerMaterial;
  readonly timestampSeconds: number;
  readonly signatures: Signatures;
}

/**
 * Signs an event once for all its webhooks. What is signed names no webhook: the body of an event never changes, and Ed25519
 * and HMAC make the same signature of the same bytes (RFC 8032, section 5.1.6). So within a second, deliveries of one event
 * differ in nothing but where they go, and half of what an attempt costs is spared.
 */
export function createRecentSignatures(signAnew = sign): Sign {
  // An array, not a `Map`: see `NumberedValues`.
  const recent = new Array<Signed | undefined>(places).fill(undefined);

  return (material, content) => {
    const { eventSeq, timestampSeconds } = content;
    const place = eventSeq % places;
    const found = recent[place];
    if (
      found?.eventSeq === eventSeq &&
      found.timestampSeconds === timestampSeconds &&
      // Another object after each change of a key or a secret.
      found.material === material
    ) {
      return found.signatures;
    }
    const signatures = signAnew(material, content);
    recent[place] = { eventSeq, material, timestampSeconds, signatures };
    return signatures;
  };
}
