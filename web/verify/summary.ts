import type { Finding } from "./verify-delivery.ts";

export interface Summary {
  /** `partly`: valid by the public key, but not by the shared secret. */
  readonly verdict: "genuine" | "partly" | "not_genuine" | "nothing";
  /** One sentence. */
  readonly text: string;
}

/**
 * What the findings amount to. One good signature is enough for a receiver, and one bad signature is too many, except one
 * made with the shared secret: after a rotation, a holder of the new secret cannot check what the old one signed.
 */
export function summarize(findings: readonly Finding[]): Summary {
  const of = (...checks: readonly Finding["check"][]) =>
    findings.filter(({ check }) => checks.includes(check)).map(({ verdict }) => verdict);
  const byKey = of("service-signature", "webhook-signature-v1a");
  const bySecret = of("webhook-signature-v1");
  const isBad = (verdict: Finding["verdict"]) => verdict === "invalid" || verdict === "unknown_key";
  const isGood = (verdict: Finding["verdict"]) => verdict === "valid";

  if (byKey.some(isBad)) return { verdict: "not_genuine", text: "The signature does not verify" };
  if (byKey.some(isGood)) {
    return bySecret.some(isBad)
      ? {
          verdict: "partly",
          text: "The Ed25519 signature verifies; the one made with the secret does not: has it been replaced since?",
        }
      : { verdict: "genuine", text: "The signature verifies" };
  }
  if (bySecret.some(isBad)) return { verdict: "not_genuine", text: "The signature does not verify" };
  if (bySecret.some(isGood)) return { verdict: "genuine", text: "The signature verifies" };
  return { verdict: "nothing", text: "There is no signature to check" };
}
