import { eq } from "drizzle-orm";
import type { Charge, NewInvoice } from "../../domain/books.ts";
import type { BooksChange } from "../../domain/books-change.ts";
import { adoptCharge, keepWaiting, lookUpSoon, sendCharge } from "../../domain/charges.ts";
import { beginAttempt, closeBooks, endMonth, orderUpgrade, settleUp } from "../../domain/invoices.ts";
import type { BillingVerbs, ListedCharge } from "../billing.ts";
import { chargeOf, required } from "./billing-rows.ts";
import * as t from "./billing-schema.ts";
import type { Connection } from "./connection.ts";
import { type LoadedBooks, loadBooks, lockCharge, writeBooks, writeCharge } from "./open-books.ts";
import { arrayText } from "./parameters.ts";
import { forgetSandboxCustomer } from "./sandbox-books.ts";
import type { WriteTransaction } from "./writes.ts";

type Verbs = Pick<
  BillingVerbs,
  | "prepareUpgrade"
  | "endMonth"
  | "settleUp"
  | "prepareAttempt"
  | "markSent"
  | "keepWaiting"
  | "lookUpSoon"
  | "settleRefund"
  | "closeBooks"
  | "findCharge"
  | "latestCharges"
  | "adoptCharge"
>;

/** Charges as they are made, looked up and refunded; their outcomes are in `settlements.ts`. */
export function chargeVerbs({ pool, writes }: Connection): Verbs {
  /** The charge that a change adds, once it is written; nothing is written when the reference is already known. */
  async function addedBy(file: LoadedBooks, change: BooksChange | null, now: number): Promise<Charge | null> {
    const reference = change?.addsCharge?.reference;
    if (reference !== undefined && (await chargeOf(file.tx, reference))) return null;
    await writeBooks(file, change, now);
    return reference === undefined ? null : chargeOf(file.tx, reference);
  }

  /** Keys of the invoices that contain one of its days. */
  async function overlapping({ tx, account }: LoadedBooks, invoice?: NewInvoice | null): Promise<number[]> {
    if (!invoice) return [];
    const rows = await tx.run<{ key: number }>(
      `select distinct invoice_key::float8 as key from invoice_day
        where account_key = $1::bigint and day = any($2::int[])`,
      [account.key, arrayText(invoice.days.map(({ day }) => day))],
    );
    return rows.map(({ key }) => key);
  }

  const requiredCharge = async (tx: WriteTransaction, reference: string): Promise<Charge> =>
    required(await lockCharge(tx, reference), "The charge");

  async function accountOfInvoice({ db }: WriteTransaction, key: number): Promise<number> {
    const [row] = await db.select({ accountKey: t.invoice.accountKey }).from(t.invoice).where(eq(t.invoice.key, key));
    return required(row, `Invoice ${key}`).accountKey;
  }

  return {
    prepareUpgrade: (accountKey, order, now) =>
      writes.submit(async (tx) => {
        const file = await loadBooks(tx, accountKey);
        return addedBy(file, orderUpgrade(file, order, await overlapping(file, order.invoice), now), now);
      }),

    endMonth: (accountKey, invoice, nextInvoiceAt, now) =>
      writes.submit(async (tx) => {
        const file = await loadBooks(tx, accountKey);
        await writeBooks(file, endMonth(file, invoice, await overlapping(file, invoice), nextInvoiceAt, now), now);
      }),

    settleUp: (accountKey, order, now) =>
      writes.submit(async (tx) => {
        const file = await loadBooks(tx, accountKey);
        await addedBy(file, settleUp(file, order, await overlapping(file, order?.invoice), now), now);
      }),

    prepareAttempt: (invoiceKey, charge, now) =>
      writes.submit(async (tx) => {
        const file = await loadBooks(tx, await accountOfInvoice(tx, invoiceKey));
        return addedBy(file, beginAttempt(file, invoiceKey, charge, now), now);
      }),

    markSent: (reference, times, now) =>
      writes.submit(async (tx) => {
        const charge = await requiredCharge(tx, reference);
        const change = sendCharge(charge, times, now);
        await writeCharge(tx, charge, change, now);
        return change !== null;
      }),

    keepWaiting: ({ reference, lookUpAt }, until, now) =>
      writes.submit(async (tx) => {
        const charge = await requiredCharge(tx, reference);
        await writeCharge(tx, charge, keepWaiting(charge, lookUpAt, until), now);
      }),

    lookUpSoon: (reference, now) =>
      writes.submit(async (tx): Promise<number | null> => {
        const charge = await lockCharge(tx, reference);
        if (!charge) return null;
        await writeCharge(tx, charge, lookUpSoon(charge, now), now);
        return charge.accountKey;
      }),

    latestCharges: async (limit) => [
      ...(await pool.read<ListedCharge>(
        `select charge.reference, charge.kind, charge.state, charge.amount_kobo::float8 as "amountKobo", charge.reason, charge.refund,
           charge.created_at::float8 as "createdAt", charge.settled_at::float8 as "settledAt", tenant.id as "tenantId", tenant.name as "tenantName"
         from charge join billing_account account on account.key = charge.account_key
           left join tenant on tenant.key = account.tenant_key and tenant.deleted_at is null
         order by charge.key desc limit $1`,
        [limit],
      )),
    ],

    findCharge: (reference) => chargeOf({ run: pool.read }, reference),

    adoptCharge: (accountKey, found, now) =>
      writes.submit(async (tx) => {
        const file = await loadBooks(tx, accountKey);
        if (await chargeOf(tx, found.reference)) return;
        await writeBooks(file, adoptCharge(file, found, now), now);
      }),

    settleRefund: (reference, refund, times, now) =>
      writes.submit(async (tx) => {
        const charge = await requiredCharge(tx, reference);
        await writeCharge(tx, charge, { key: charge.key, refund, ...times }, now);
      }),

    closeBooks: (accountKey, now) =>
      writes.submit(async (tx) => {
        const file = await loadBooks(tx, accountKey);
        const account = closeBooks(file.account);
        if (!account) return;
        // The sandbox is in this database, too, and knows the address that the card was verified with.
        await forgetSandboxCustomer(tx, accountKey);
        await eraseBooks(tx, accountKey);
        await writeBooks(file, { account }, now);
      }),
  };
}

/** Erases all but the amounts, dates and references of charges. */
async function eraseBooks({ db }: WriteTransaction, accountKey: number): Promise<void> {
  await db.delete(t.cardVerification).where(eq(t.cardVerification.accountKey, accountKey));
  await db.delete(t.planPeriod).where(eq(t.planPeriod.accountKey, accountKey));
  await db.delete(t.invoiceDay).where(eq(t.invoiceDay.accountKey, accountKey));
  const forgotten = { invoiceKey: null, cardKey: null, reason: null, pageUrl: null };
  await db.update(t.charge).set(forgotten).where(eq(t.charge.accountKey, accountKey));
  await db.delete(t.invoice).where(eq(t.invoice.accountKey, accountKey));
}
