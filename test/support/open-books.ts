import type { BillingAccount } from "../../src/domain/books.ts";
import type { OpenBooks, OpenInvoice, OrderedLogin } from "../../src/domain/books-change.ts";
import { booksOf, invoiceOf } from "./billing-factory.ts";

/** The books of an account with a verified card; a test gives only what matters to it. */
export const openBooks = ({
  account,
  ...given
}: Partial<Omit<OpenBooks, "account">> & { account?: Partial<BillingAccount> } = {}): OpenBooks => {
  const { tenant, card } = booksOf();
  return {
    account: booksOf({ account: { creditKobo: 5_000, nextInvoiceAt: 90_000, ...account } }).account,
    tenant,
    verification: null,
    card: card && { key: card.key, processor: card.processor, signature: card.signature },
    charges: [],
    invoices: [],
    period: { key: 1, tier: "pro" },
    ...given,
  };
};

export const openInvoice = ({
  login = null,
  ...given
}: Partial<Omit<OpenInvoice, "login">> & { login?: OrderedLogin | null } = {}): OpenInvoice => ({
  ...invoiceOf({ totalKobo: 50_000, amountKobo: 50_000, ...given }),
  login,
});
