import { and, asc, eq, getTableColumns, isNull } from "drizzle-orm";
import type { BillingAccount, Charge, Invoice, InvoiceLine } from "../../domain/books.ts";
import type { OpenBooks } from "../../domain/books-change.ts";
import * as t from "./billing-schema.ts";
import type { Transaction } from "./pool.ts";

/** What several verbs of payments read. Inside a transaction: what they decide on, once the account is locked. */
type Reading = Pick<Transaction, "db">;

/** A billing account as its row has it. */
export interface AccountRow extends BillingAccount {
  readonly cardKey: number | null;
  readonly version: number;
}

export interface InvoiceRow extends Invoice {
  readonly newEmail: string | null;
  readonly newPasswordHash: string | null;
}

const { dueAt: _due, leasedBy: _by, leasedUntil: _until, ...ofAccount } = getTableColumns(t.billingAccount);
export const accountColumns = ofAccount;
export const verificationColumns = getTableColumns(t.cardVerification);
const { transactionId: _id, ...ofCharge } = getTableColumns(t.charge);
export const chargeColumns = ofCharge;
const { accountKey: _account, createdAt: _saved, ...ofCard } = getTableColumns(t.savedCard);
export const cardColumns = ofCard;
const { createdAt: _created, paidAt: _paid, ...invoiceColumns } = getTableColumns(t.invoice);

type CardInUse = NonNullable<OpenBooks["card"]>;

/** @throws when there is no such row: a key or a reference of ours names one */
export function required<Row>(row: Row | null | undefined, what: string): Row {
  if (!row) throw new Error(`${what} does not exist`);
  return row;
}

export async function accountByKey({ db }: Reading, key: number): Promise<AccountRow> {
  const [row] = await db.select(accountColumns).from(t.billingAccount).where(eq(t.billingAccount.key, key));
  return required(row, `Billing account ${key}`);
}

/** Null when the tenant never had to do with payments. */
export async function accountOf({ db }: Reading, tenantKey: number): Promise<AccountRow | null> {
  const [row] = await db.select(accountColumns).from(t.billingAccount).where(eq(t.billingAccount.tenantKey, tenantKey));
  return row ?? null;
}

export async function openVerificationOf({ db }: Reading, accountKey: number) {
  const [row] = await db
    .select(verificationColumns)
    .from(t.cardVerification)
    .where(and(eq(t.cardVerification.accountKey, accountKey), eq(t.cardVerification.state, "open")));
  return row ?? null;
}

export async function openPeriodOf({ db }: Reading, accountKey: number) {
  const [row] = await db
    .select({ key: t.planPeriod.key, tier: t.planPeriod.tier })
    .from(t.planPeriod)
    .where(and(eq(t.planPeriod.accountKey, accountKey), isNull(t.planPeriod.endedAt)));
  return row ?? null;
}

export async function chargeByKey({ db }: Reading, key: number): Promise<Charge> {
  const [row] = await db.select(chargeColumns).from(t.charge).where(eq(t.charge.key, key));
  return required(row, `Charge ${key}`);
}

export async function chargeOf({ db }: Reading, reference: string): Promise<Charge | null> {
  const [row] = await db.select(chargeColumns).from(t.charge).where(eq(t.charge.reference, reference));
  return row ?? null;
}

export const openChargesOf = ({ db }: Reading, accountKey: number): Promise<Charge[]> =>
  db
    .select(chargeColumns)
    .from(t.charge)
    .where(and(eq(t.charge.accountKey, accountKey), eq(t.charge.state, "open")))
    .orderBy(asc(t.charge.key));

export async function openInvoicesOf({ db }: Reading, accountKey: number): Promise<InvoiceRow[]> {
  const rows = await db
    .select(invoiceColumns)
    .from(t.invoice)
    .where(and(eq(t.invoice.accountKey, accountKey), eq(t.invoice.state, "open")))
    .orderBy(asc(t.invoice.key));
  return rows.map((row) => ({ ...row, lines: JSON.parse(row.lines) as InvoiceLine[] }));
}

export async function cardInUse({ db }: Reading, { cardKey }: AccountRow): Promise<CardInUse | null> {
  if (cardKey === null) return null;
  const [row] = await db
    .select({ key: t.savedCard.key, processor: t.savedCard.processor, signature: t.savedCard.signature })
    .from(t.savedCard)
    .where(eq(t.savedCard.key, cardKey));
  return row ?? null;
}
