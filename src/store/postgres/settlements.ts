import { actsOfUpgrade, byAccount, type Origin } from "../../domain/audit.ts";
import type { CardVerification, Charge } from "../../domain/books.ts";
import type { BooksChange } from "../../domain/books-change.ts";
import { failCharge, type PaymentOutcome, payCharge, payVerification } from "../../domain/payments.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { confirmCharge } from "../../domain/verifications.ts";
import type { BillingVerbs, PaymentSettled } from "../billing.ts";
import { noteAct } from "./audit.ts";
import { chargeOf, openVerificationOf, required } from "./billing-rows.ts";
import type { Connection } from "./connection.ts";
import { type LoadedBooks, loadCharge, writeBooks } from "./open-books.ts";

type Verbs = Pick<BillingVerbs, "settleVerification" | "settleCharge" | "failCharge" | "awaitConfirmation">;

/** The outcomes of charges: each verb compares with what it finds, so that of two reports about one payment only one counts. */
export function settlementVerbs({ writes }: Connection): Verbs {
  async function settled(
    file: LoadedBooks,
    { reference }: Charge,
    { kind, change }: PaymentOutcome,
    now: number,
  ): Promise<PaymentSettled> {
    await writeBooks(file, change, now);
    return {
      kind,
      charge: required(await chargeOf(file.tx, reference), "The charge"),
      tenant: file.held?.tenant ?? null,
    };
  }

  return {
    settleVerification: (reference, card, { transactionId }, nextInvoiceAt, now) =>
      writes.submit(async (tx) => {
        const { file, charge } = await loadCharge(tx, reference);
        return settled(file, charge, payVerification(file, charge, { card, transactionId, nextInvoiceAt }, now), now);
      }),

    settleCharge: (reference, payment, now, by) =>
      writes.submit(async (tx) => {
        const { file, charge } = await loadCharge(tx, reference);
        const outcome = payCharge(file, charge, payment, now);
        await noteUpgrade(file, outcome.change, by);
        return settled(file, charge, outcome, now);
      }),

    failCharge: (reference, failure, after, now) =>
      writes.submit(async (tx): Promise<Tenant | null> => {
        const { file, charge } = await loadCharge(tx, reference);
        await writeBooks(file, failCharge(file, charge, failure, after, now), now);
        return file.held?.tenant ?? null;
      }),

    awaitConfirmation: (reference, pageUrl, { token }, lookUpAt, now, by) =>
      writes.submit(async (tx): Promise<CardVerification | null> => {
        const { file, charge } = await loadCharge(tx, reference);
        const change = confirmCharge(file, charge, { pageUrl, lookUpAt, token }, now);
        await writeBooks(file, change, now);
        await noteUpgrade(file, change, by);
        return change && openVerificationOf(tx, charge.accountKey);
      }),
  };
}

/** The origin of an upgrade is forgotten when nobody waited for the end of its charge. */
async function noteUpgrade(
  { tx, tenant }: LoadedBooks,
  change: BooksChange | null,
  by: Origin = byAccount(null),
): Promise<void> {
  if (!tenant || !change?.tenant) return;
  for (const act of actsOfUpgrade(tenant, change.tenant, by)) await noteAct(tx, tenant.id, act);
}
