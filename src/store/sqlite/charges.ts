import type { Charge, NewInvoice } from "../../domain/books.ts";
import type { BooksChange } from "../../domain/books-change.ts";
import { adoptCharge, keepWaiting, lookUpSoon, sendCharge } from "../../domain/charges.ts";
import { beginAttempt, closeBooks, endMonth, orderUpgrade, settleUp } from "../../domain/invoices.ts";
import type { BillingVerbs, ListedCharge } from "../billing.ts";
import type { Connection } from "./connection.ts";
import type { LoadedBooks } from "./open-books.ts";
import { forgetSandboxCustomer } from "./sandbox-books.ts";

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

/** Creates, looks up and refunds charges; what becomes of them is in `settlements.ts`. */
export function chargeVerbs({ client, writer, billing, books }: Connection): Verbs {
  // The sandbox is in this database, too, and knows the e-mail address that the card was verified with.
  const forgetAtSandbox = forgetSandboxCustomer(client);
  const eraseBooks = [
    "delete from card_verification where account_key = ?1",
    "delete from plan_period where account_key = ?1",
    "delete from invoice_day where account_key = ?1",
    "update charge set invoice_key = null, card_key = null, reason = null, page_url = null where account_key = ?1",
    "delete from invoice where account_key = ?1",
  ].map((statement) => client.prepare<null, [number]>(statement));

  /** Writes a change and returns the charge that it adds; writes nothing when the reference is known. */
  function addedBy(file: LoadedBooks, change: BooksChange | null, now: number): Charge | null {
    const reference = change?.addsCharge?.reference;
    if (reference !== undefined && billing.chargeOf(reference)) return null;
    books.write(file, change, now);
    return reference === undefined ? null : billing.requiredCharge(reference);
  }

  const withDays = client.prepare<{ key: number }, [number, string]>(
    `select distinct invoice_key as key from invoice_day
      where account_key = ?1 and day in (select value from json_each(?2))`,
  );
  /** Keys of the invoices that already cover one of its days. */
  const overlapping = ({ account }: LoadedBooks, invoice?: NewInvoice | null): number[] =>
    invoice ? withDays.all(account.key, JSON.stringify(invoice.days.map(({ day }) => day))).map(({ key }) => key) : [];

  const selectLatest = client.prepare<ListedCharge, [number]>(
    `select charge.reference, charge.kind, charge.state, charge.amount_kobo as "amountKobo", charge.reason, charge.refund,
       charge.created_at as "createdAt", charge.settled_at as "settledAt", tenant.id as "tenantId", tenant.name as "tenantName"
     from charge join billing_account account on account.key = charge.account_key
       left join tenant on tenant.key = account.tenant_key and tenant.deleted_at is null
     order by charge.key desc limit ?`,
  );

  return {
    prepareUpgrade: (accountKey, order, now) =>
      writer.submit<Charge | null>((tx) => {
        const file = books.load(tx, accountKey);
        return addedBy(file, orderUpgrade(file, order, overlapping(file, order.invoice), now), now);
      }),

    endMonth: (accountKey, invoice, nextInvoiceAt, now) =>
      writer.submit<void>((tx) => {
        const file = books.load(tx, accountKey);
        books.write(file, endMonth(file, invoice, overlapping(file, invoice), nextInvoiceAt, now), now);
      }),

    settleUp: (accountKey, order, now) =>
      writer.submit<void>((tx) => {
        const file = books.load(tx, accountKey);
        addedBy(file, settleUp(file, order, overlapping(file, order?.invoice), now), now);
      }),

    prepareAttempt: (invoiceKey, charge, now) =>
      writer.submit<Charge | null>((tx) => {
        const file = books.load(tx, billing.accountOfInvoice(invoiceKey));
        return addedBy(file, beginAttempt(file, invoiceKey, charge, now), now);
      }),

    markSent: (reference, times, now) =>
      writer.submit<boolean>(() => {
        const charge = billing.requiredCharge(reference);
        const change = sendCharge(charge, times, now);
        books.writeCharge(charge.accountKey, change, now);
        return change !== null;
      }),

    keepWaiting: ({ reference, lookUpAt }, until, now) =>
      writer.submit<void>(() => {
        const charge = billing.requiredCharge(reference);
        books.writeCharge(charge.accountKey, keepWaiting(charge, lookUpAt, until), now);
      }),

    lookUpSoon: (reference, now) =>
      writer.submit<number | null>(() => {
        const charge = billing.chargeOf(reference);
        if (!charge) return null;
        books.writeCharge(charge.accountKey, lookUpSoon(charge, now), now);
        return charge.accountKey;
      }),

    latestCharges: async (limit) => selectLatest.all(limit),

    findCharge: async (reference) => billing.chargeOf(reference),

    adoptCharge: (accountKey, found, now) =>
      writer.submit<void>((tx) => {
        if (billing.chargeOf(found.reference)) return;
        const file = books.load(tx, accountKey);
        books.write(file, adoptCharge(file, found, now), now);
      }),

    settleRefund: (reference, refund, times, now) =>
      writer.submit<void>(() => {
        const { key, accountKey } = billing.requiredCharge(reference);
        books.writeCharge(accountKey, { key, refund, ...times }, now);
      }),

    closeBooks: (accountKey, now) =>
      writer.submit<void>((tx) => {
        const file = books.load(tx, accountKey);
        const account = closeBooks(file.account);
        if (!account) return;
        for (const statement of [...forgetAtSandbox, ...eraseBooks]) statement.run(accountKey);
        books.write(file, { account }, now);
      }),
  };
}
