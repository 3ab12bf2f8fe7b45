import { eq, sql } from "drizzle-orm";
import type { CardVerification, Charge } from "../../domain/books.ts";
import {
  type BooksChange,
  type CardToAdd,
  type ChargeChange,
  type ChargeToAdd,
  changePeriod,
  type InvoiceToAdd,
  type OpenBooks,
  type OpenInvoice,
  type PeriodChange,
  type RowKey,
} from "../../domain/books-change.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { isTaken, loginOfUpgrade } from "../../domain/tenant-change.ts";
import {
  type AccountRow,
  booksRows,
  chargeOf,
  type InvoiceRow,
  lockAccountOf,
  openPeriodOf,
  required,
} from "./billing-rows.ts";
import * as t from "./billing-schema.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";
import { type ChangingTenant, changeTenant, lockKeeper } from "./tenant-rows.ts";
import type { WriteTransaction } from "./writes.ts";

/**
 * The state that decisions about payments are based on, and the place where the resulting changes are written.
 *
 * The account is locked until the end of the transaction, and its tenant before it: verbs of the tenant reach its books after
 * the tenant, and two that lock in different orders would deadlock. So of two reports about one payment, the second sees what
 * the first one did, whichever node they came in at.
 */
export interface LoadedBooks extends OpenBooks {
  readonly tx: WriteTransaction;
  readonly account: AccountRow;
  /** Null when the tenant has been deleted. */
  readonly held: ChangingTenant | null;
}

const ofKey = "$1::bigint";
const ofCharge = "(select account_key from charge where reference = $1)";

/** An account, found by its key or by one of its charges. */
interface Found {
  readonly key: number;
  readonly tenantKey: number | null;
}

/** Returns the account as it was before the lock: whoever held its tenant until then may have changed it. */
const lockTenantText = (account: string) => `
  with found as (select key, tenant_key from billing_account where key = ${account}),
    locked as (
      select 1 from tenant where key = (select tenant_key from found) and deleted_at is null for update)
  select key::float8 as key, tenant_key::float8 as "tenantKey", (select count(*) from locked) from found`;

const lockAccountText = (account: string) =>
  `select key::float8 as key, tenant_key::float8 as "tenantKey" from billing_account where key = ${account} for update`;

const byKey = { tenant: lockTenantText(ofKey), account: lockAccountText(ofKey) };
const byCharge = { tenant: lockTenantText(ofCharge), account: lockAccountText(ofCharge) };

/** Locks the tenant of an account, if it has one, and then the account. @returns null when there is no account */
async function lockBoth({ run }: Transaction, texts: typeof byKey, value: number | string): Promise<Found | null> {
  for (;;) {
    const [before] = await run<Found>(texts.tenant, [value]);
    const [locked] = await run<Found>(texts.account, [value]);
    // Its tenant may have left it meanwhile.
    if (locked?.tenantKey === before?.tenantKey) return locked ?? null;
  }
}

/** Locks an account and its tenant, and reads everything open. */
export async function loadBooks(tx: WriteTransaction, accountKey: number): Promise<LoadedBooks> {
  required(await lockBoth(tx, byKey, accountKey), `Billing account ${accountKey}`);
  return read(tx, accountKey);
}

/** Like `loadBooks`, for a tenant that is already locked; null when it has never had anything to do with payments. */
export async function loadBooksOf(
  tx: WriteTransaction,
  tenantKey: number,
  held: ChangingTenant | null,
): Promise<LoadedBooks | null> {
  const account = await lockAccountOf(tx, tenantKey);
  return account && { ...(await read(tx, account.key)), held, tenant: held?.tenant ?? null };
}

/** Like `loadBooksOf`; creates the account if there is none. */
export async function openBooksOf(
  tx: WriteTransaction,
  tenantKey: number,
  held: ChangingTenant,
  newAccountId: string,
): Promise<LoadedBooks> {
  const found = await loadBooksOf(tx, tenantKey, held);
  if (found) return found;
  const account = { id: newAccountId, tenantKey, state: "active" } as const;
  await tx.db.insert(t.billingAccount).values(account);
  return required(await loadBooksOf(tx, tenantKey, held), "A new billing account");
}

/** The books of a charge, and the charge as it is now that they are locked. @throws when no charge has the reference */
export async function loadCharge(
  tx: WriteTransaction,
  reference: string,
): Promise<{ file: LoadedBooks; charge: Charge }> {
  const { key } = required(await lockBoth(tx, byCharge, reference), "The charge");
  const file = await read(tx, key);
  return { file, charge: required(await chargeOf(tx, reference), "The charge") };
}

/** A charge on its own: only its account is locked. Null when no charge has the reference. */
export async function lockCharge(tx: WriteTransaction, reference: string): Promise<Charge | null> {
  const [account] = await tx.run(byCharge.account, [reference]);
  return account ? chargeOf(tx, reference) : null;
}

/** Null changes nothing. After any other change the biller looks at the account again. */
export async function writeBooks(books: LoadedBooks, change: BooksChange | null, now: number): Promise<void> {
  if (change) await apply(books, change, now);
}

/** Like `writeBooks`, for a charge that was locked on its own. */
export async function writeCharge(
  tx: WriteTransaction,
  { accountKey }: Charge,
  change: ChargeChange | null,
  now: number,
): Promise<void> {
  if (!change) return;
  await patchCharge(tx, change, null);
  await touch(tx, accountKey, {}, now);
}

/** To be called when a locked tenant has changed: that may begin or end the days that are charged. */
export async function recordPlan(tx: WriteTransaction, tenant: Tenant, now: number): Promise<void> {
  const account = await lockAccountOf(tx, tenant.key);
  const period = account && changePeriod({ account, tenant, period: await openPeriodOf(tx, account.key) }, now);
  if (period) await writePeriod(tx, account.key, period);
}

async function read(tx: WriteTransaction, accountKey: number): Promise<LoadedBooks> {
  const { account, tenant, cards, charges, invoices, ...open } = await booksRows(tx, accountKey);
  const opened: OpenInvoice[] = [];
  for (const row of invoices) opened.push(await toOpenInvoice(tx, row, tenant));
  return {
    ...open,
    tx,
    account,
    held: tenant && { tenant },
    tenant,
    card: cards.find(({ key }) => key === account.cardKey) ?? null,
    charges: charges.filter(({ state }) => state === "open"),
    invoices: opened,
  };
}

async function toOpenInvoice(
  tx: WriteTransaction,
  { newEmail, newPasswordHash, ...invoice }: InvoiceRow,
  tenant: Tenant | null,
): Promise<OpenInvoice> {
  const isOrdered = newEmail !== null && newPasswordHash !== null;
  const ordered = isOrdered ? { email: newEmail, passwordHash: newPasswordHash } : null;
  const login = loginOfUpgrade(tenant, invoice.targetTier, ordered);
  if (!login) return { ...invoice, login };
  const holder = await lockKeeper(tx, login.email.toLowerCase());
  return { ...invoice, login: { ...login, isTaken: isTaken(holder, tenant?.key ?? null) } };
}

/** Rows that release something come before those that take it: days, the one open charge of an invoice, the one open page. */
async function apply({ tx, account: { key: accountKey }, held }: LoadedBooks, change: BooksChange, now: number) {
  const { account = {}, verification, addsVerification, addsCharge, addsInvoice, period } = change;
  const card = change.addsCard ? await addCard(tx, accountKey, change.addsCard) : null;
  for (const { key, ...fields } of change.cards ?? []) {
    if (hasFields(fields)) await tx.db.update(t.savedCard).set(fields).where(eq(t.savedCard.key, key));
  }
  for (const { key, login, ...fields } of change.invoices ?? []) {
    const patch = { ...fields, ...(login === null && { newEmail: null, newPasswordHash: null }) };
    if (hasFields(patch)) await tx.db.update(t.invoice).set(patch).where(eq(t.invoice.key, key));
  }
  for (const key of change.freesDaysOf ?? []) await tx.db.delete(t.invoiceDay).where(eq(t.invoiceDay.invoiceKey, key));
  for (const charge of change.charges ?? []) await patchCharge(tx, charge, card);
  const invoice = addsInvoice ? await addInvoice(tx, accountKey, addsInvoice) : null;
  const charge = addsCharge ? await addCharge(tx, accountKey, addsCharge, invoice) : null;
  if (verification) await patchVerification(tx, verification, charge);
  if (addsVerification) {
    await tx.db.insert(t.cardVerification).values({ ...addsVerification, accountKey, state: "open" });
  }
  const { cardKey, ...fields } = account;
  await touch(tx, accountKey, { ...fields, ...(cardKey !== undefined && { cardKey: rowKey(cardKey, card) }) }, now);
  if (change.removesCard !== undefined) await tx.db.delete(t.savedCard).where(eq(t.savedCard.key, change.removesCard));
  if (period) await writePeriod(tx, accountKey, period);
  if (held && change.tenant) await changeTenant(tx, held, change.tenant);
}

/** Updates the account's own row, so that the biller looks at it, and whoever has read it knows that it is outdated. */
async function touch(
  { db }: WriteTransaction,
  accountKey: number,
  fields: Partial<typeof t.billingAccount.$inferInsert>,
  now: number,
): Promise<void> {
  await db
    .update(t.billingAccount)
    .set({ ...fields, dueAt: now, version: sql`${t.billingAccount.version} + 1` })
    .where(eq(t.billingAccount.key, accountKey));
}

async function patchCharge({ db }: WriteTransaction, { key, cardKey, ...fields }: ChargeChange, card: number | null) {
  const patch = { ...fields, ...(cardKey !== undefined && { cardKey: rowKey(cardKey, card) }) };
  if (hasFields(patch)) await db.update(t.charge).set(patch).where(eq(t.charge.key, key));
}

async function patchVerification(
  { db }: WriteTransaction,
  { key, chargeKey, ...fields }: NonNullable<BooksChange["verification"]>,
  charge: number | null,
): Promise<void> {
  const patch: Partial<CardVerification> = {
    ...fields,
    ...(chargeKey !== undefined && { chargeKey: rowKey(chargeKey, charge) }),
  };
  if (hasFields(patch)) await db.update(t.cardVerification).set(patch).where(eq(t.cardVerification.key, key));
}

async function addCard({ db }: WriteTransaction, accountKey: number, card: CardToAdd): Promise<number> {
  const [added] = await db
    .insert(t.savedCard)
    .values({ ...card, accountKey })
    .returning({ key: t.savedCard.key });
  return required(added, "A new card").key;
}

async function addInvoice(
  { db, run }: WriteTransaction,
  accountKey: number,
  { lines, days, login, ...invoice }: InvoiceToAdd,
): Promise<number> {
  const [added] = await db
    .insert(t.invoice)
    .values({
      ...invoice,
      accountKey,
      state: "open",
      lines: JSON.stringify(lines),
      newEmail: login?.email ?? null,
      newPasswordHash: login?.passwordHash ?? null,
    })
    .returning({ key: t.invoice.key });
  const { key } = required(added, "A new invoice");
  await run(
    `insert into invoice_day (account_key, day, invoice_key, tier)
     select $1::bigint, day, $2::bigint, tier from unnest($3::int[], $4::text[]) as given (day, tier)`,
    [accountKey, key, arrayText(days.map(({ day }) => day)), arrayText(days.map(({ tier }) => tier))],
  );
  return key;
}

async function addCharge(
  { db }: WriteTransaction,
  accountKey: number,
  { invoiceKey, ...charge }: ChargeToAdd,
  invoice: number | null,
): Promise<number> {
  const [added] = await db
    .insert(t.charge)
    .values({ ...charge, accountKey, invoiceKey: rowKey(invoiceKey, invoice) })
    .returning({ key: t.charge.key });
  return required(added, "A new charge").key;
}

async function writePeriod({ db }: WriteTransaction, accountKey: number, { ends, starts, at }: PeriodChange) {
  if (ends !== null) await db.update(t.planPeriod).set({ endedAt: at }).where(eq(t.planPeriod.key, ends));
  if (starts !== null) await db.insert(t.planPeriod).values({ accountKey, tier: starts, startedAt: at });
}

const hasFields = (patch: object): boolean => Object.keys(patch).length > 0;

const rowKey = (key: RowKey | null, added: number | null): number | null => (key === "added" ? added : key);
