import type { SandboxCard, SandboxTransaction } from "../../store/sandbox-books.ts";
import type { Rejected, Succeeded } from "../processor.ts";

/** A saved-card charge has no page on which somebody could give up, so it has no cancel URL either. */
export const noCancelUrl = "";
export const isHosted = ({ cancelUrl }: SandboxTransaction) => cancelUrl !== noCancelUrl;

/** States in which a customer can still pay on a hosted page. The bank's page has a way back to another card. */
export const payable: readonly SandboxTransaction["state"][] = ["waiting", "confirming", "failed"];

export const isPayable = (transaction: SandboxTransaction) =>
  isHosted(transaction) && payable.includes(transaction.state);

// ---------------------------------------------------------------- what becomes of one

type Change = Pick<SandboxTransaction, "state" | "cardToken" | "reason" | "paidAt">;

export const paid = (cardToken: string | null, now: number) =>
  ({ state: "paid", cardToken, reason: null, paidAt: now }) satisfies Change;

export const failed = (reason: string) => ({ state: "failed", cardToken: null, reason, paidAt: null }) satisfies Change;

export const confirming = (cardToken: string) =>
  ({ state: "confirming", cardToken, reason: null, paidAt: null }) satisfies Change;

export function chargedLater({ later, token }: SandboxCard, now: number): Change {
  if (later === "pays") return paid(token, now);
  if (later === "asks") return confirming(token);
  return failed("Declined");
}

export function succeeded({ reference, amountKobo }: SandboxTransaction, card: SandboxCard | null): Succeeded {
  return {
    kind: "succeeded",
    reference,
    amountKobo,
    requestedKobo: amountKobo,
    currency: "NGN",
    mode: "test",
    transactionId: `sandbox-${reference}`,
    // Even if the card has been forgotten since: a look-up shows it as it was when it paid.
    card: card?.reusable
      ? {
          token: card.token,
          email: card.email,
          signature: card.signature,
          brand: card.brand,
          last4: card.last4,
          expMonth: card.expMonth,
          expYear: card.expYear,
        }
      : null,
  };
}

/** Adds the reference under both names, as Paystack does. */
export function withReference({ returnUrl, reference }: SandboxTransaction): string {
  const url = new URL(returnUrl);
  url.searchParams.append("trxref", reference);
  url.searchParams.append("reference", reference);
  return url.href;
}

// ---------------------------------------------------------------- refusals

export const rejected = (reason: string, retry: Rejected["retry"]): Rejected => ({ kind: "rejected", reason, retry });

/** Addresses at this domain are refused, so that a customer with a refused address can be simulated. */
const refusedDomain = "@refused.example";

export const isRefusedEmail = (email: string): boolean => email.toLowerCase().endsWith(refusedDomain);

/** What the real processor would refuse too, so that it shows here first. */
export function refusalOf(
  { reference, amountKobo }: { reference: string; amountKobo: number },
  urls: readonly string[],
) {
  if (!/^[A-Za-z0-9.=-]+$/.test(reference))
    return rejected("The reference contains a character that is not allowed", "operator");
  if (!Number.isSafeInteger(amountKobo) || amountKobo <= 0) {
    return rejected("The amount must be a positive number of kobo", "operator");
  }
  const isWeb = (url: string) => /^https?:$/.test(URL.parse(url)?.protocol ?? "");
  return urls.every(isWeb) ? null : rejected("A return URL must be http or https", "operator");
}
