import { actsOfUpgrade, byAccount, type Origin } from "../../domain/audit.ts";
import type { CardVerification } from "../../domain/books.ts";
import type { BooksChange } from "../../domain/books-change.ts";
import { failCharge, type PaymentOutcome, payCharge, payVerification } from "../../domain/payments.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { confirmCharge } from "../../domain/verifications.ts";
import type { BillingVerbs, PaymentSettled } from "../billing.ts";
import type { Connection } from "./connection.ts";
import type { LoadedBooks } from "./open-books.ts";

type Verbs = Pick<BillingVerbs, "settleVerification" | "settleCharge" | "failCharge" | "awaitConfirmation">;

/** What became of charges: each verb checks the current state, so that of two reports about one payment only one counts. */
export function settlementVerbs({ writer, billing, books, audit }: Connection): Verbs {
  function settled(
    file: LoadedBooks,
    chargeKey: number,
    { kind, change }: PaymentOutcome,
    now: number,
  ): PaymentSettled {
    books.write(file, change, now);
    return { kind, charge: billing.charge(chargeKey), tenant: file.held?.tenant ?? null };
  }

  /** The origin of an upgrade is forgotten when nobody waited for the end of its charge. */
  function noteUpgrade({ tx, tenant }: LoadedBooks, change: BooksChange | null, by: Origin = byAccount(null)): void {
    if (!tenant || !change?.tenant) return;
    for (const act of actsOfUpgrade(tenant, change.tenant, by)) audit.note(tx, tenant.id, act);
  }

  return {
    settleVerification: (reference, card, { transactionId }, nextInvoiceAt, now) =>
      writer.submit<PaymentSettled>((tx) => {
        const charge = billing.requiredCharge(reference);
        const file = books.load(tx, charge.accountKey);
        return settled(
          file,
          charge.key,
          payVerification(file, charge, { card, transactionId, nextInvoiceAt }, now),
          now,
        );
      }),

    settleCharge: (reference, payment, now, by) =>
      writer.submit<PaymentSettled>((tx) => {
        const charge = billing.requiredCharge(reference);
        const file = books.load(tx, charge.accountKey);
        const outcome = payCharge(file, charge, payment, now);
        noteUpgrade(file, outcome.change, by);
        return settled(file, charge.key, outcome, now);
      }),

    failCharge: (reference, failure, after, now) =>
      writer.submit<Tenant | null>((tx) => {
        const charge = billing.requiredCharge(reference);
        const file = books.load(tx, charge.accountKey);
        books.write(file, failCharge(file, charge, failure, after, now), now);
        return file.held?.tenant ?? null;
      }),

    awaitConfirmation: (reference, pageUrl, { token }, lookUpAt, now, by) =>
      writer.submit<CardVerification | null>((tx) => {
        const charge = billing.requiredCharge(reference);
        const file = books.load(tx, charge.accountKey);
        const change = confirmCharge(file, charge, { pageUrl, lookUpAt, token }, now);
        books.write(file, change, now);
        noteUpgrade(file, change, by);
        return change && billing.verificationOf(charge.accountKey);
      }),
  };
}
