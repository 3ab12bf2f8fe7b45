import { byAccount, type Origin, tierRaised } from "../../domain/audit.ts";
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
  function noteRaised({ tx, held }: LoadedBooks, change: BooksChange | null, by: Origin = byAccount(null)): void {
    const tier = change?.tenant?.tier;
    if (held && tier !== undefined) audit.note(tx, held.tenant.id, tierRaised(by, tier));
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
        noteRaised(file, outcome.change, by);
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
        noteRaised(file, change, by);
        return change && billing.verificationOf(charge.accountKey);
      }),
  };
}
