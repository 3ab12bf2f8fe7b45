import type { Failed } from "../processor.ts";

type Retry = Failed["retry"];

/**
 * How the texts begin with which Paystack and the banks refuse a saved card; these refusals have no codes. A declined
 * charge (HTTP 200) and a refused request (HTTP 400) share them. From Paystack's documentation, in lower case; where a
 * wording was replaced, the newer one comes first.
 */
const refusals: readonly (readonly [beginning: string, retry: Retry])[] = [
  // The token is of no use, or is not this customer's.
  ["email does not match authorization code", "new_card"],
  ["authorization code is invalid", "new_card"],
  ["invalid authorization code", "new_card"],
  ["authorization code does not exist", "new_card"],
  ["this authorization is not reusable", "new_card"],
  // The bank will never let this card pay us.
  ["expired card", "new_card"],
  ["pickup card", "new_card"],
  ["transaction not permitted", "new_card"],
  ["restricted card", "new_card"],
  // The card may work another day. "Denied by fraud system" asks for 24 hours, which every retry of ours waits anyway.
  ["insufficient funds", "later"],
  ["do not honor", "later"],
  ["declined", "later"],
  ["issuer or switch inoperative", "later"],
  ["timeout", "later"],
  ["denied by fraud system", "later"],
  // Ten failures in a row at any merchant of Paystack: one charge in 24 hours until one succeeds.
  ["charge attempt cannot be fulfilled", "later"],
  // Refunds are paid out of the balance, which the operator tops up.
  ["insufficient balance", "later"],
];

/** @returns undefined for a text that says nothing about the card */
export function retryAfterText(text: string): Retry | undefined {
  const lower = text.trim().toLowerCase();
  return refusals.find(([beginning]) => lower.startsWith(beginning))?.[1];
}

/** How Paystack says that the customer's e-mail address is unacceptable, whatever the card. */
const emailRefusals = ["invalid email address", "email is not allowed to be empty", "email address is required"];

export function isAboutEmail(text: string): boolean {
  const lower = text.trim().toLowerCase();
  return emailRefusals.some((beginning) => lower.startsWith(beginning));
}
