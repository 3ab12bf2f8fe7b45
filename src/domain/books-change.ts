import type {
  BillingAccount,
  CardVerification,
  Charge,
  Invoice,
  NewCard,
  NewCharge,
  NewInvoice,
  NewLogin,
  PlanPeriod,
  SavedCard,
} from "./books.ts";
import type { Tenant, TenantChange, Tier } from "./tenant.ts";

/** What a decision about payments knows about one account, as plain data: everything that is open. */
export interface OpenBooks {
  readonly account: BillingAccount;
  /** Null once it has been deleted. */
  readonly tenant: Tenant | null;
  readonly verification: CardVerification | null;
  /** The card in use. */
  readonly card: Pick<SavedCard, "key" | "processor" | "signature"> | null;
  /** The oldest first. */
  readonly charges: readonly Charge[];
  /** The oldest first. */
  readonly invoices: readonly OpenInvoice[];
  readonly period: OpenPeriod | null;
}

export interface OpenInvoice extends Invoice {
  /** The login that comes with an upgrade; null: the account keeps its own. */
  readonly login: OrderedLogin | null;
}

export interface OrderedLogin extends Pick<NewLogin, "email"> {
  /** Null: the account keeps its own. */
  readonly passwordHash: string | null;
  /** The address has become the login of another account. */
  readonly isTaken: boolean;
}

export interface OpenPeriod extends Pick<PlanPeriod, "tier"> {
  readonly key: number;
}

/** The key of a row, or of the one that the same change adds to the table. */
export type RowKey = number | "added";

/** Fields of a row that change. */
type Changed<Row, Field extends keyof Row> = { readonly key: number } & Partial<Pick<Row, Field>>;

export type AccountChange = Partial<Omit<BillingAccount, "key" | "id">> & { readonly cardKey?: RowKey | null };

export type VerificationChange = Changed<CardVerification, "state"> & { readonly chargeKey?: RowKey | null };

export type ChargeChange = Changed<
  Charge,
  | "state"
  | "amountKobo"
  | "sentAt"
  | "resendAt"
  | "lookUps"
  | "lookUpAt"
  | "pageUrl"
  | "settledAt"
  | "reason"
  | "refund"
  | "refundAt"
> & { readonly cardKey?: RowKey; readonly transactionId?: string };

export type InvoiceChange = Changed<
  Invoice,
  "state" | "totalKobo" | "amountKobo" | "attempts" | "firstFailedAt" | "nextAttemptAt"
> & {
  readonly paidAt?: number;
  /** Forgets the login that came with the order. */
  readonly login?: null;
};

export type CardChange = Changed<SavedCard, "sealed" | "savedAt" | "expMonth" | "expYear" | "refused" | "forgetAt">;

/** What a decision changes in the books of one account: rows with their new values, and rows to add. The rest stays. */
export interface BooksChange {
  readonly account?: AccountChange;
  readonly tenant?: TenantChange;
  readonly verification?: VerificationChange;
  readonly charges?: readonly ChargeChange[];
  readonly invoices?: readonly InvoiceChange[];
  /** Invoices whose days are free again. */
  readonly freesDaysOf?: readonly number[];
  readonly cards?: readonly CardChange[];
  /** The card whose row is deleted. */
  readonly removesCard?: number;
  readonly period?: PeriodChange;
  readonly addsVerification?: Pick<CardVerification, "token" | "createdAt" | "chargeKey">;
  readonly addsCharge?: ChargeToAdd;
  readonly addsInvoice?: InvoiceToAdd;
  readonly addsCard?: CardToAdd;
}

export interface ChargeToAdd extends NewCharge, Pick<Charge, "kind" | "state" | "createdAt" | "sentAt" | "settledAt"> {
  readonly invoiceKey: RowKey | null;
  readonly transactionId: string | null;
}

export interface InvoiceToAdd extends NewInvoice, Pick<Invoice, "attempts" | "nextAttemptAt" | "targetTier"> {
  readonly createdAt: number;
  readonly login: NewLogin | null;
}

export interface CardToAdd extends NewCard, Pick<SavedCard, "forgetAt" | "savedAt"> {}

/** One plan is in force at a time: the previous period ends as the next one starts. */
export interface PeriodChange {
  /** The open period; null: there is none. */
  readonly ends: number | null;
  readonly starts: Tier | null;
  readonly at: number;
}

/**
 * Keeps the record of plans in line with the tenant: a paid plan counts from the first verified card on, and not while the
 * account is suspended, when it cannot be used.
 *
 *   none ◀──free, suspended, deleted── held ──another tier──▶ held
 *     └──card verified, resumed──▶ held
 */
export function changePeriod(
  { account, tenant, period }: Pick<OpenBooks, "tenant" | "period"> & { account: Pick<BillingAccount, "verifiedAt"> },
  at: number,
): PeriodChange | null {
  const isUsable = tenant !== null && tenant.operatorSuspendedAt === null && tenant.paymentSuspendedAt === null;
  const held = isUsable && account.verifiedAt !== null && tenant.enforcedTier !== "free" ? tenant.enforcedTier : null;
  return (period?.tier ?? null) === held ? null : { ends: period?.key ?? null, starts: held, at };
}

/** The change, together with its consequence for the record of plans. */
export function withPeriod(books: OpenBooks, change: BooksChange, now: number): BooksChange {
  const account = { ...books.account, ...change.account };
  const tenant = books.tenant && { ...books.tenant, ...change.tenant };
  const period = changePeriod({ account, tenant, period: books.period }, now);
  return period ? { ...change, period } : change;
}
