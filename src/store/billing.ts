import type { Origin } from "../domain/audit.ts";
import type {
  AfterFailure,
  BillingAccount,
  CardVerification,
  Charge,
  ChargeFailure,
  Invoice,
  NewCard,
  NewCharge,
  NewInvoice,
  NewLogin,
  PlanPeriod,
  SavedCard,
} from "../domain/books.ts";
import type { Tenant, Tier } from "../domain/tenant.ts";

/** The part of the store's seam that payments use; the error contract is that of `store.ts`. */

/** Everything about one paying account that is still open. What to do next follows from it alone (`billing/next-task.ts`). */
export interface Books {
  readonly account: BillingAccount;
  /** Null once it has been deleted. */
  readonly tenant: Tenant | null;
  /** The open verification. */
  readonly verification: CardVerification | null;
  /** The card in use. */
  readonly card: SavedCard | null;
  /** Cards that the processor has yet to be told to forget. */
  readonly cardsToForget: readonly SavedCard[];
  /** Charges that are open, to be looked up or to be refunded, oldest first. */
  readonly charges: readonly Charge[];
  /** The open invoices, oldest first. */
  readonly invoices: readonly Invoice[];
  /** Grows with every change; see `postpone`. */
  readonly version: number;
}

export interface DueAccount {
  readonly key: number;
  readonly version: number;
}

/** Ids for rows that a verb may have to make. */
export interface NewVerification {
  readonly accountId: string;
  readonly token: string;
}

/**
 * What became of a payment that the processor reports as made. `applied`: it served its purpose. `refund_due`: it came too
 * late or was a duplicate, and is refunded. `known`: it had been settled before.
 */
export interface PaymentSettled {
  readonly kind: "applied" | "refund_due" | "known";
  readonly charge: Charge;
  /** As it is now; null when it has been deleted. */
  readonly tenant: Tenant | null;
}

/** A charge as the operator sees it. */
export interface ListedCharge extends Pick<Charge, "reference" | "kind" | "state" | "amountKobo" | "reason"> {
  /** Null when the account is deleted. */
  readonly tenantId: string | null;
  readonly tenantName: string | null;
  readonly createdAt: number;
  readonly settledAt: number | null;
  readonly refund: "due" | "requested" | "done" | null;
}

/**
 * These verbs compare against the state in the database as they write, so that of two reports about one payment exactly one
 * counts. They trust no tenant: the reference alone decides which account a payment belongs to.
 */
export interface BillingVerbs {
  /**
   * Opens a card verification, unless one is already open, and applies the target tier and login of an upgrade immediately.
   * The upgrade that is pending already changes nothing and finds its verification.
   * @param by who ordered the upgrade, for the audit
   * @throws invalid `email_taken`; what `refusalOfUpgrade` says
   */
  openVerification(
    tenantKey: number,
    ids: NewVerification,
    upgrade: { readonly tier: Tier; readonly login: NewLogin | null } | null,
    now: number,
    by?: Origin,
  ): Promise<{ tenant: Tenant; verification: CardVerification }>;
  /** The verification behind a `payment_url`, with the charge that its page pays; null when there is none, or not any more. */
  findVerification(token: string): Promise<{ verification: CardVerification; tenant: Tenant } | null>;
  /** Null when the tenant has never had anything to do with payments. */
  billingAccountOf(tenantKey: number): Promise<number | null>;
  books(accountKey: number): Promise<Books>;

  /**
   * Creates the charge for a new hosted page, replacing the previous one. Null when the verification is no longer open, or
   * the reference is already known, which, as in the other verbs that create a charge, means that another caller was faster.
   * A payment that still comes in for the previous page is refunded.
   */
  preparePage(verificationKey: number, charge: NewCharge, now: number): Promise<Charge | null>;
  /** The processor has made the page; why it did not do so before no longer matters. */
  setPage(reference: string, pageUrl: string, now: number): Promise<void>;
  /** Abandons the page of a verification, so that the next visitor gets a new one; ends the confirmation of an upgrade. */
  dropPage(verificationKey: number, now: number): Promise<void>;
  /** Closes an open verification: an upgrade falls back to the plan in force. Null when it was not open. */
  giveUpVerification(verificationKey: number, now: number): Promise<Tenant | null>;

  /**
   * Records an upgrade that is about to be charged. Null when another charge of the account is open, a day of its invoice is
   * already in another one, or the reference is known.
   */
  prepareUpgrade(
    accountKey: number,
    order: { invoice: NewInvoice; charge: NewCharge; tier: Tier; login: NewLogin | null },
    now: number,
  ): Promise<Charge | null>;
  /**
   * Issues the invoice for a month's end, or none, and moves on to the next month's end; takes effect once, even if called
   * again. Does nothing when one of its days is in another invoice.
   */
  endMonth(accountKey: number, invoice: NewInvoice | null, nextInvoiceAt: number, now: number): Promise<void>;
  /**
   * Issues the last invoice of a deleted account with its only charge, or none, replacing whatever is still open. Does
   * nothing when the reference is known, or one of its days has been paid.
   */
  settleUp(
    accountKey: number,
    order: { readonly invoice: NewInvoice; readonly charge: NewCharge } | null,
    now: number,
  ): Promise<void>;
  /** Stores the next charge of an open invoice. Null when one is already open, or the reference is known. */
  prepareAttempt(invoiceKey: number, charge: NewCharge, now: number): Promise<Charge | null>;
  /**
   * Notes that the processor is about to be asked. False when the charge is no longer open, or `resendAt` has not been
   * reached.
   */
  markSent(reference: string, times: { lookUpAt: number; resendAt: number }, now: number): Promise<boolean>;

  /** A hosted page was paid with a card that can be charged again. `nextInvoiceAt` counts if it is the first one. */
  settleVerification(
    reference: string,
    card: NewCard,
    payment: { transactionId: string },
    nextInvoiceAt: number,
    now: number,
  ): Promise<PaymentSettled>;
  /**
   * A charge of a saved card was paid. If the amount paid (`amountKobo`) differs from the charge's, the invoice counts as
   * paid all the same: any excess is credited, and any shortfall is waived.
   * @param by who ordered the upgrade, for the audit, which has what it changes; as in `awaitConfirmation`
   */
  settleCharge(
    reference: string,
    payment: { transactionId: string; amountKobo?: number },
    now: number,
    by?: Origin,
  ): Promise<PaymentSettled>;
  /**
   * A charge failed permanently; `refund` when money moved nevertheless. An upgrade that the bank wanted confirmed falls back
   * to the plan in force. Does nothing to a charge that is not open.
   */
  failCharge(
    reference: string,
    failure: ChargeFailure,
    after: AfterFailure | null,
    now: number,
  ): Promise<Tenant | null>;
  /**
   * The charge is still in progress, or still watched: when to look again. Counts as a look-up. Does nothing once settled.
   * @param seen the charge as it was when the processor was asked: an earlier time that was set since then is kept
   */
  keepWaiting(
    seen: Pick<Charge, "reference" | "lookUpAt">,
    until: { lookUpAt: number | null; resendAt?: number; reason?: string },
    now: number,
  ): Promise<void>;
  /** The bank wants the customer to confirm on a page; the account gets a `payment_url` for it. */
  awaitConfirmation(
    reference: string,
    pageUrl: string,
    ids: NewVerification,
    lookUpAt: number,
    now: number,
    by?: Origin,
  ): Promise<CardVerification | null>;
  /** Lets a callback or a poll have a charge looked up now. The account's key; null when the reference is not ours. */
  lookUpSoon(reference: string, now: number): Promise<number | null>;

  /** The stage of a refund, and when to check it again. After a request, `resendAt` is when the next one may be made. */
  settleRefund(
    reference: string,
    refund: "due" | "requested" | "done",
    times: { refundAt: number | null; resendAt?: number },
    now: number,
  ): Promise<void>;
  /** Removes a card that the processor has forgotten. */
  cardForgotten(cardKey: number, now: number): Promise<void>;
  /** The processor could not be told: when to try again. */
  forgetCardLater(cardKey: number, at: number, now: number): Promise<void>;
  /** Removes what is left of a deleted account, except the amounts, dates and references of its charges. */
  closeBooks(accountKey: number, now: number): Promise<void>;
  /** Deleted accounts of which more is left than that, oldest first. */
  accountsToClose(limit: number): Promise<number[]>;

  /**
   * Accounts with something to do, longest waiting first, with the version of their books (see `postpone`); and when the next
   * account after them is due.
   */
  dueAccounts(now: number, limit: number): Promise<{ accounts: DueAccount[]; nextAt: number | null }>;
  /** Nothing to do before `at`, if nothing has changed since the version of the books. */
  postpone(accountKey: number, version: number, at: number | null): Promise<void>;

  /** The plans that the account has had, and the days that invoices cover, each with whether its invoice is paid. */
  planDays(accountKey: number): Promise<{ periods: PlanPeriod[]; invoiced: ReadonlyMap<number, "open" | "paid"> }>;
  /** The charges of all accounts, newest first; for the operator. */
  latestCharges(limit: number): Promise<ListedCharge[]>;
  /** Null when no charge has it. */
  findCharge(reference: string): Promise<Charge | null>;
  /**
   * Adds a charge that only the processor knows of to the books, without an invoice. If it was paid it is credited; if it is
   * still in progress (`transactionId` null) it is watched, and refunded should it be paid.
   */
  adoptCharge(
    accountKey: number,
    charge: Pick<Charge, "kind" | "reference" | "processor" | "amountKobo"> & { readonly transactionId: string | null },
    now: number,
  ): Promise<void>;
  /** The latest charges with their invoices, newest first. */
  chargeHistory(accountKey: number, limit: number): Promise<Charge[]>;
  /** The latest charge of an upgrade that was paid. */
  latestPaidUpgrade(accountKey: number): Promise<Charge | null>;
}
