import type { Charge } from "../../domain/books.ts";
import type { BillingVerbs } from "../billing.ts";
import type { Connection } from "./connection.ts";
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
  | "adoptCharge"
>;

export const openChargeOfInvoiceSql = "select key from charge where invoice_key = ?1 and state = 'open' limit 1";

/** Its outcome is known and has had its consequences. */
export const isSettled = (charge: Charge): boolean => charge.state === "succeeded" || charge.refund !== null;

/** Charges as they are made, looked at and paid back; what becomes of them is in `settlements.ts`. */
export function chargeVerbs({ client, lane, billing }: Connection): Verbs {
  const openChargeOfInvoice = client.prepare<{ key: number }, [number]>(openChargeOfInvoiceSql);
  const openUpgrade = client.prepare<{ key: number }, [number]>(
    "select key from charge where account_key = ?1 and state = 'open' and kind = 'upgrade' limit 1",
  );
  const beginAttempt = client.prepare<null, [number]>(
    "update invoice set attempts = attempts + 1, next_attempt_at = null where key = ?1",
  );
  const setNextInvoice = client.prepare<null, [number, number | null]>(
    "update billing_account set next_invoice_at = ?2 where key = ?1",
  );
  const setSent = client.prepare<null, [number, number, number, number]>(
    "update charge set sent_at = ?2, look_up_at = ?3, resend_at = ?4 where key = ?1",
  );
  const markPaid = client.prepare<null, [number, number, string]>(
    "update charge set state = 'succeeded', settled_at = ?2, transaction_id = ?3 where key = ?1",
  );
  const setWaiting = client.prepare<null, [number, number | null, number | null, string | null]>(
    `update charge set look_ups = look_ups + 1, look_up_at = ?2, resend_at = coalesce(?3, resend_at),
       reason = coalesce(?4, reason) where key = ?1`,
  );
  const setLookUpAt = client.prepare<null, [number, number]>("update charge set look_up_at = ?2 where key = ?1");
  const setRefund = client.prepare<null, [number, string, number | null]>(
    "update charge set refund = ?2, refund_at = ?3 where key = ?1",
  );
  // The sandbox is in this file too, and knows the address that the card was verified with.
  const forgetAtSandbox = forgetSandboxCustomer(client);
  const eraseBooks = [
    "delete from card_verification where account_key = ?1",
    "delete from plan_period where account_key = ?1",
    "delete from invoice_day where account_key = ?1",
    "update charge set invoice_key = null, card_key = null, reason = null, page_url = null where account_key = ?1",
    "delete from invoice where account_key = ?1",
    "update billing_account set state = 'closed', verified_at = null, credit_kobo = 0 where key = ?1",
  ].map((statement) => client.prepare<null, [number]>(statement));

  return {
    prepareUpgrade: (accountKey, { invoice, charge, tier, login }, now) =>
      lane.submit<Charge | null>(() => {
        if (billing.account(accountKey).state !== "active" || openUpgrade.get(accountKey)) return null;
        const order = { tier, email: login?.email ?? null, passwordHash: login?.passwordHash ?? null };
        const invoiceKey = billing.addInvoice(accountKey, invoice, order, now);
        beginAttempt.run(invoiceKey);
        billing.touch(accountKey, now);
        return billing.addCharge(accountKey, "upgrade", charge, invoiceKey, now);
      }),

    endMonth: (accountKey, invoice, nextInvoiceAt, now) =>
      lane.submit<void>(() => {
        if (billing.account(accountKey).state !== "active") return;
        if (invoice) billing.addInvoice(accountKey, invoice, null, now);
        setNextInvoice.run(accountKey, nextInvoiceAt);
        billing.touch(accountKey, now);
      }),

    settleUp: (accountKey, order, now) =>
      lane.submit<void>(() => {
        const account = billing.account(accountKey);
        if (account.state !== "closing" || account.nextInvoiceAt === null) return;
        for (const { key } of billing.openInvoices(accountKey)) billing.voidInvoice(accountKey, key);
        setNextInvoice.run(accountKey, null);
        if (order) {
          const invoiceKey = billing.addInvoice(accountKey, order.invoice, null, now);
          beginAttempt.run(invoiceKey);
          billing.addCharge(accountKey, "closing", order.charge, invoiceKey, now);
        }
        billing.touch(accountKey, now);
      }),

    prepareAttempt: (invoiceKey, charge, now) =>
      lane.submit<Charge | null>(() => {
        const invoice = billing.invoice(invoiceKey);
        if (invoice.state !== "open" || openChargeOfInvoice.get(invoiceKey)) return null;
        const { accountKey } = invoice;
        beginAttempt.run(invoiceKey);
        billing.touch(accountKey, now);
        return billing.addCharge(accountKey, invoice.kind, charge, invoiceKey, now);
      }),

    markSent: (reference, { lookUpAt, resendAt }, now) =>
      lane.submit<boolean>(() => {
        const charge = billing.requiredCharge(reference);
        if (charge.state !== "open") return false;
        setSent.run(charge.key, now, lookUpAt, resendAt);
        billing.touch(charge.accountKey, now);
        return true;
      }),

    keepWaiting: (reference, { lookUpAt, resendAt, reason }, now) =>
      lane.submit<void>(() => {
        const charge = billing.requiredCharge(reference);
        setWaiting.run(charge.key, lookUpAt, resendAt ?? null, reason ?? null);
        billing.touch(charge.accountKey, now);
      }),

    lookUpSoon: (reference, now) =>
      lane.submit<number | null>(() => {
        const charge = billing.chargeOf(reference);
        if (!charge) return null;
        if (charge.refund === "requested") setRefund.run(charge.key, "requested", now);
        else if (!isSettled(charge)) setLookUpAt.run(charge.key, now);
        billing.touch(charge.accountKey, now);
        return charge.accountKey;
      }),

    findCharge: async (reference) => billing.chargeOf(reference),

    adoptCharge: (accountKey, { kind, reference, processor, amountKobo, transactionId }, now) =>
      lane.submit<void>(() => {
        if (billing.chargeOf(reference)) return;
        const found = { reference, processor, amountKobo, cardKey: null, lookUpAt: null };
        const charge = billing.addCharge(accountKey, kind, found, null, now);
        billing.touch(accountKey, now);
        if (transactionId === null) {
          billing.supersede(charge, now);
          return;
        }
        markPaid.run(charge.key, now, transactionId);
        billing.addCredit(accountKey, amountKobo);
      }),

    settleRefund: (reference, refund, at, now) =>
      lane.submit<void>(() => {
        const charge = billing.requiredCharge(reference);
        setRefund.run(charge.key, refund, at);
        billing.touch(charge.accountKey, now);
      }),

    closeBooks: (accountKey, now) =>
      lane.submit<void>(() => {
        if (billing.account(accountKey).state !== "closing") return;
        for (const statement of [...forgetAtSandbox, ...eraseBooks]) statement.run(accountKey);
        billing.touch(accountKey, now);
      }),
  };
}
