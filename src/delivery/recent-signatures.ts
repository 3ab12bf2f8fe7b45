import { createRecent } from "../lib/recent.ts";
import { type Signatures, type SignedContent, type SignerMaterial, sign } from "./signature.ts";

/** What is signed, and of which event it is. */
export interface SignedEvent extends SignedContent {
  readonly eventSeq: number;
}

export type Sign = (material: SignerMaterial, content: SignedEvent) => Signatures;

/** Deliveries of one event that can go at once go soon after each other: with four times as many no more signing was spared. */
const rememberedEvents = 128;

interface Signed {
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
  const recent = createRecent<number, Signed>(rememberedEvents);

  return (material, content) => {
    const { eventSeq, timestampSeconds } = content;
    const found = recent.get(eventSeq);
    // The material is another object after each change of a key or a secret.
    if (found?.timestampSeconds === timestampSeconds && found.material === material) return found.signatures;
    const signatures = signAnew(material, content);
    recent.set(eventSeq, { material, timestampSeconds, signatures });
    return signatures;
  };
}
