import type { CardVerification, Charge, Invoice, NewCard, SavedCard } from "../../src/domain/books.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import type { Books } from "../../src/store/billing.ts";

/** Billing rows in which only the interesting fields are given. */

export const chargeOf = (given: Partial<Charge> = {}): Charge => ({
  key: 1,
  accountKey: 1,
  reference: "sub-abc-a1",
  processor: "sandbox:test",
  kind: "subscription",
  state: "open",
  amountKobo: 1_500_000,
  invoiceKey: 1,
  cardKey: 1,
  createdAt: 0,
  sentAt: 0,
  resendAt: null,
  lookUps: 0,
  lookUpAt: null,
  pageUrl: null,
  settledAt: null,
  reason: null,
  refund: null,
  refundAt: null,
  ...given,
});

export const invoiceOf = (given: Partial<Invoice> = {}): Invoice => ({
  key: 1,
  accountKey: 1,
  id: "abc",
  kind: "subscription",
  state: "open",
  lines: [],
  totalKobo: 1_500_000,
  creditUsedKobo: 0,
  amountKobo: 1_500_000,
  attempts: 0,
  firstFailedAt: null,
  nextAttemptAt: null,
  targetTier: null,
  ...given,
});

export const cardOf = (given: Partial<SavedCard> = {}): SavedCard => ({
  key: 1,
  processor: "sandbox:test",
  sealed: new Uint8Array(),
  signature: "SIG",
  brand: "visa",
  last4: "4081",
  expMonth: "12",
  expYear: "2030",
  savedAt: 0,
  refused: false,
  forgetAt: null,
  ...given,
});

/** A card that has just been verified, not saved yet. */
export const newCardOf = (given: Partial<NewCard> = {}): NewCard => ({
  processor: "sandbox:test",
  sealed: new Uint8Array([7]),
  signature: "NEW",
  brand: "visa",
  last4: "4242",
  expMonth: "01",
  expYear: "2031",
  ...given,
});

export const verificationOf = (given: Partial<CardVerification> = {}): CardVerification => ({
  key: 1,
  accountKey: 1,
  token: "token",
  state: "open",
  createdAt: 0,
  chargeKey: null,
  ...given,
});

export const tenantOf = (given: Partial<Tenant> = {}): Tenant => ({
  key: 1,
  id: "t1",
  name: "Ada",
  email: "ada@example.com",
  tier: "pro",
  enforcedTier: "pro",
  passwordHash: "",
  sessionVersion: 1,
  createdAt: 0,
  operatorSuspendedAt: null,
  paymentSuspendedAt: null,
  pastDueAt: null,
  ownEventsPerMonth: null,
  ownWebhooks: null,
  ownRetentionDays: null,
  ownPayloadDays: null,
  ownStorageBytes: null,
  storageFullAt: null,
  ...given,
});

export const booksOf = ({
  account = {},
  ...given
}: Partial<Omit<Books, "account">> & { account?: Partial<Books["account"]> } = {}): Books => ({
  account: {
    key: 1,
    id: "bill_1",
    tenantKey: 1,
    verifiedAt: 0,
    creditKobo: 0,
    nextInvoiceAt: null,
    state: "active",
    ...account,
  },
  tenant: tenantOf(),
  verification: null,
  card: cardOf(),
  cardsToForget: [],
  charges: [],
  invoices: [],
  version: 1,
  ...given,
});
