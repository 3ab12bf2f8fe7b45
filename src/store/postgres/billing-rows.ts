import { getTableColumns, getTableName } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { BillingAccount, CardVerification, Charge, Invoice, InvoiceLine, SavedCard } from "../../domain/books.ts";
import type { OpenPeriod } from "../../domain/books-change.ts";
import type { Tenant } from "../../domain/tenant.ts";
import * as t from "./billing-schema.ts";
import { tenantColumns } from "./held-tenants.ts";
import type { Transaction } from "./pool.ts";

/** What several payment verbs read. Inside a transaction, with the account locked, it is what they decide on. */
type Reading = Pick<Transaction, "run">;

/** A billing account as stored in its row. */
export interface AccountRow extends BillingAccount {
  readonly cardKey: number | null;
  readonly version: number;
}

export interface InvoiceRow extends Invoice {
  readonly newEmail: string | null;
  readonly newPasswordHash: string | null;
}

const { dueAt: _due, leasedBy: _by, leasedUntil: _until, ...accountColumns } = getTableColumns(t.billingAccount);
export const verificationColumns = getTableColumns(t.cardVerification);
const { transactionId: _id, ...ofCharge } = getTableColumns(t.charge);
export const chargeColumns = ofCharge;
const { accountKey: _account, ...cardColumns } = getTableColumns(t.savedCard);
const { createdAt: _created, paidAt: _paid, ...invoiceColumns } = getTableColumns(t.invoice);
const periodColumns = { key: t.planPeriod.key, tier: t.planPeriod.tier };

/** @throws when there is no such row although one of our own keys or references names it */
export function required<Row>(row: Row | null | undefined, what: string): Row {
  if (!row) throw new Error(`${what} does not exist`);
  return row;
}

/** A row as JSON, so that one statement reads several tables as of one moment. */
function jsonOf(columns: Readonly<Record<string, PgColumn>>): string {
  const fields = Object.entries(columns).map(
    ([field, { table, name }]) => `'${field}', ${getTableName(table)}.${name}`,
  );
  return `json_build_object(${fields.join(", ")})`;
}

/** Everything about one account that is not finished; lists have the oldest first. */
export interface BooksRows {
  readonly account: AccountRow;
  /** Null once the tenant has been deleted. */
  readonly tenant: Tenant | null;
  /** The open one. */
  readonly verification: CardVerification | null;
  /** The one in use, and those that are to be forgotten. */
  readonly cards: readonly SavedCard[];
  /** Those that are open, to be looked up or to be refunded. */
  readonly charges: readonly Charge[];
  /** The open ones. */
  readonly invoices: readonly InvoiceRow[];
  /** The open one. */
  readonly period: OpenPeriod | null;
}

/** Empty lists are null, and what JSON has no type for is text. */
interface BooksJson extends Omit<BooksRows, "cards" | "charges" | "invoices"> {
  readonly cards: readonly (Omit<SavedCard, "sealed"> & { readonly sealed: string })[] | null;
  readonly charges: readonly Charge[] | null;
  readonly invoices: readonly (Omit<InvoiceRow, "lines"> & { readonly lines: string })[] | null;
}

export const booksText = `
  select json_build_object(
    'account', ${jsonOf(accountColumns)},
    'tenant', (select ${jsonOf(tenantColumns)} from tenant
      where tenant.key = billing_account.tenant_key and deleted_at is null),
    'verification', (select ${jsonOf(verificationColumns)} from card_verification
      where account_key = billing_account.key and state = 'open'),
    'cards', (select json_agg(${jsonOf(cardColumns)} order by saved_card.key) from saved_card
      where account_key = billing_account.key and (saved_card.key = billing_account.card_key or forget_at is not null)),
    'charges', (select json_agg(${jsonOf(chargeColumns)} order by charge.key) from charge
      where account_key = billing_account.key
        and (state = 'open' or look_up_at is not null or refund_at is not null)),
    'invoices', (select json_agg(${jsonOf(invoiceColumns)} order by invoice.key) from invoice
      where account_key = billing_account.key and state = 'open'),
    'period', (select ${jsonOf(periodColumns)} from plan_period
      where account_key = billing_account.key and ended_at is null)
  )::text as books
  from billing_account where key = $1::bigint`;

export async function booksRows({ run }: Reading, accountKey: number): Promise<BooksRows> {
  const [row] = await run<{ books: string }>(booksText, [accountKey]);
  const { books } = required(row, `Billing account ${accountKey}`);
  const { cards, charges, invoices, ...others } = JSON.parse(books) as BooksJson;
  return {
    ...others,
    cards: (cards ?? []).map((card) => ({ ...card, sealed: bytesOf(card.sealed) })),
    charges: charges ?? [],
    invoices: (invoices ?? []).map((invoice) => ({ ...invoice, lines: JSON.parse(invoice.lines) as InvoiceLine[] })),
  };
}

/** Decodes a `bytea` in JSON: `\x`, then two digits per byte. */
const bytesOf = (text: string): Uint8Array => Uint8Array.fromHex(text.slice(2));

/** The only row of a statement; null when there is none. */
async function rowOf<Row>({ run }: Reading, text: string, value: number | string): Promise<Row | null> {
  const [found] = await run<{ row: string }>(text, [value]);
  return found ? JSON.parse(found.row) : null;
}

const accountText = `select ${jsonOf(accountColumns)}::text as row from billing_account where tenant_key = $1::bigint`;

/** Null when the tenant has never had anything to do with payments. */
export const accountOf = (reading: Reading, tenantKey: number): Promise<AccountRow | null> =>
  rowOf(reading, accountText, tenantKey);

/** As `accountOf`, locked until the transaction ends. */
export const lockAccountOf = (tx: Transaction, tenantKey: number): Promise<AccountRow | null> =>
  rowOf(tx, `${accountText} for update`, tenantKey);

const verificationText = `select ${jsonOf(verificationColumns)}::text as row from card_verification
  where account_key = $1::bigint and state = 'open'`;

export const openVerificationOf = (reading: Reading, accountKey: number): Promise<CardVerification | null> =>
  rowOf(reading, verificationText, accountKey);

const periodText = `select ${jsonOf(periodColumns)}::text as row from plan_period
  where account_key = $1::bigint and ended_at is null`;

export const openPeriodOf = (reading: Reading, accountKey: number): Promise<OpenPeriod | null> =>
  rowOf(reading, periodText, accountKey);

const chargeText = `select ${jsonOf(chargeColumns)}::text as row from charge where reference = $1`;

export const chargeOf = (reading: Reading, reference: string): Promise<Charge | null> =>
  rowOf(reading, chargeText, reference);
