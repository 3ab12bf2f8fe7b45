import { createRecent } from "../lib/recent.ts";
import { type Signatures, type SignedContent, type SignerMaterial, sign } from "./signature.ts";

/** What is signed, and the event it belongs to. */
export interface SignedEvent extends SignedContent {
  readonly eventSeq: number;
}

export type Sign = (material: SignerMaterial, content: SignedEvent) => Signatures;

/**
 * Deliveries of one event that can go immediately follow each other closely: remembering four times as many events saved
 * no more signing.
 */
const rememberedEvents = 128;

interface Signed {
  readonly material: SignerMaterial;
  readonly timestampSeconds: number;
  readonly signatures: Signatures;
}

/**
 * Signs an event once for all its webhooks. The signed content names no webhook, the body of an event never changes, and
 * Ed25519 and HMAC make the same signature from the same bytes (RFC 8032, section 5.1.6). So within a second, deliveries
 * of one event differ only in where they go, and half the cost of an attempt is saved.
 */
export function createRecentSignatures(signAnew = sign): Sign {
  const recent = createRecent<number, Signed>(rememberedEvents);

  return (material, content) => {
    const { eventSeq, timestampSeconds } = content;
    const found = recent.get(eventSeq);
    // Every change of a key or a secret makes a new material object.
    if (found?.timestampSeconds === timestampSeconds && found.material === material) return found.signatures;
    const signatures = signAnew(material, content);
    recent.set(eventSeq, { material, timestampSeconds, signatures });
    return signatures;
  };
}
