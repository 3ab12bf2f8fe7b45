import { createRecent } from "../lib/recent.ts";
import { type Signatures, type SignedContent, type SignerMaterial, sign } from "./signature.ts";

export type Sign = (material: SignerMaterial, content: SignedContent) => Signatures;

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
 *
 * They are remembered by the event's id. Its number will not do: a test delivery is stored nowhere, so its number may also
 * be that of an event.
 */
export function createRecentSignatures(signAnew = sign): Sign {
  const recent = createRecent<string, Signed>(rememberedEvents);

  return (material, content) => {
    const { eventId, timestampSeconds } = content;
    const found = recent.get(eventId);
    // Every change of a key or a secret makes a new material object.
    if (found?.timestampSeconds === timestampSeconds && found.material === material) return found.signatures;
    const signatures = signAnew(material, content);
    recent.set(eventId, { material, timestampSeconds, signatures });
    return signatures;
  };
}
