import type { Database } from "bun:sqlite";
import type { CardVerification } from "../../domain/books.ts";
import {
  type AccountChange,
  type BooksChange,
  type CardChange,
  type CardToAdd,
  type ChargeChange,
  type ChargeToAdd,
  changePeriod,
  type InvoiceChange,
  type InvoiceToAdd,
  type OpenBooks,
  type OpenInvoice,
  type PeriodChange,
  type RowKey,
} from "../../domain/books-change.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { isTaken, loginOfUpgrade } from "../../domain/tenant-change.ts";
import type { AccountRow, BillingRows, InvoiceRow } from "./billing-rows.ts";
import type { HeldTenant, HoldTenant } from "./held-tenants.ts";
import { createPatch } from "./patch.ts";
import { createTenantRows } from "./tenant-rows.ts";
import type { WriteTransaction } from "./transaction.ts";

/** What a transaction has read of an account, to base decisions on and to write to. */
export interface LoadedBooks extends OpenBooks {
  readonly tx: WriteTransaction;
  /** Null when the tenant has been deleted. */
  readonly held: HeldTenant | null;
}

/** Loads what payment decisions are based on, and writes the changes that they lead to. */
export interface BooksFile {
  load(tx: WriteTransaction, accountKey: number): LoadedBooks;
  /** Null changes nothing. After any other change the biller looks at the account again. */
  write(books: LoadedBooks, change: BooksChange | null, now: number): void;
  /** Like `write`, for a single charge. */
  writeCharge(accountKey: number, change: ChargeChange | null, now: number): void;
  /** The tenant has changed, which may start or end a period of charged days. */
  recordPlan(tenant: Tenant, now: number): void;
}

/** The fields of a row, as they are written. */
type Fields<Change> = Required<Omit<Change, "key" | "cardKey" | "chargeKey" | "login">>;
type CardKeyField = { readonly cardKey: number | null };

export function createBooksFile(client: Database, hold: HoldTenant, billing: BillingRows): BooksFile {
  const tenants = createTenantRows(client);
  const touch = client.prepare<null, [number, number]>(
    "update billing_account set due_at = ?2, version = version + 1 where key = ?1",
  );
  const patchAccount = createPatch<Fields<AccountChange> & CardKeyField>(client, "billing_account", {
    tenantKey: "tenant_key",
    state: "state",
    verifiedAt: "verified_at",
    creditKobo: "credit_kobo",
    nextInvoiceAt: "next_invoice_at",
    cardKey: "card_key",
  });
  const patchVerification = createPatch<Pick<CardVerification, "state" | "chargeKey">>(client, "card_verification", {
    state: "state",
    chargeKey: "charge_key",
  });
  const patchCharge = createPatch<Fields<ChargeChange> & CardKeyField>(client, "charge", {
    state: "state",
    amountKobo: "amount_kobo",
    cardKey: "card_key",
    sentAt: "sent_at",
    resendAt: "resend_at",
    lookUps: "look_ups",
    lookUpAt: "look_up_at",
    pageUrl: "page_url",
    transactionId: "transaction_id",
    settledAt: "settled_at",
    reason: "reason",
    refund: "refund",
    refundAt: "refund_at",
  });
  const patchInvoice = createPatch<Fields<InvoiceChange>>(client, "invoice", {
    state: "state",
    totalKobo: "total_kobo",
    amountKobo: "amount_kobo",
    attempts: "attempts",
    firstFailedAt: "first_failed_at",
    nextAttemptAt: "next_attempt_at",
    paidAt: "paid_at",
  });
  const patchCard = createPatch<Fields<CardChange>>(client, "saved_card", {
    sealed: "sealed",
    savedAt: "created_at",
    expMonth: "exp_month",
    expYear: "exp_year",
    refused: "refused",
    forgetAt: "forget_at",
  });
  const forgetLogin = client.prepare<null, [number]>(
    "update invoice set new_email = null, new_password_hash = null where key = ?1",
  );
  const freeDays = client.prepare<null, [number]>("delete from invoice_day where invoice_key = ?1");
  const startPeriod = client.prepare<null, [number, string, number]>(
    "insert into plan_period (account_key, tier, started_at) values (?1, ?2, ?3)",
  );
  const endPeriod = client.prepare<null, [number, number]>("update plan_period set ended_at = ?2 where key = ?1");
  const insertVerification = client.prepare<null, [number, string, number, number | null]>(
    "insert into card_verification (account_key, token, state, created_at, charge_key) values (?1, ?2, 'open', ?3, ?4)",
  );
  const insertCharge = client.prepare(
    `insert into charge (account_key, reference, processor, kind, state, amount_kobo, invoice_key, card_key, created_at,
       sent_at, look_up_at, settled_at, transaction_id)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)`,
  );
  const insertInvoice = client.prepare(
    `insert into invoice (id, account_key, kind, state, lines, total_kobo, credit_used_kobo, amount_kobo, attempts,
       next_attempt_at, created_at, target_tier, new_email, new_password_hash)
     values (?1, ?2, ?3, 'open', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)`,
  );
  const insertDay = client.prepare<null, [number, number, number, string]>(
    "insert into invoice_day (account_key, day, invoice_key, tier) values (?1, ?2, ?3, ?4)",
  );
  const insertCard = client.prepare(
    `insert into saved_card (account_key, processor, sealed, signature, brand, last4, exp_month, exp_year, forget_at,
       created_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`,
  );

  const deleteCard = client.prepare<null, [number]>("delete from saved_card where key = ?1");

  function addCard(accountKey: number, card: CardToAdd): number {
    const { processor, sealed, signature, brand, last4, expMonth, expYear, forgetAt, savedAt } = card;
    return keyOf(
      insertCard.run(accountKey, processor, sealed, signature, brand, last4, expMonth, expYear, forgetAt, savedAt),
    );
  }

  function addInvoice(accountKey: number, invoice: InvoiceToAdd): number {
    const key = keyOf(
      insertInvoice.run(
        invoice.id,
        accountKey,
        invoice.kind,
        JSON.stringify(invoice.lines),
        invoice.totalKobo,
        invoice.creditUsedKobo,
        invoice.amountKobo,
        invoice.attempts,
        invoice.nextAttemptAt,
        invoice.createdAt,
        invoice.targetTier,
        invoice.login?.email ?? null,
        invoice.login?.passwordHash ?? null,
      ),
    );
    for (const { day, tier } of invoice.days) insertDay.run(accountKey, day, key, tier);
    return key;
  }

  const addCharge = (accountKey: number, charge: ChargeToAdd, invoiceKey: number | null): number =>
    keyOf(
      insertCharge.run(
        accountKey,
        charge.reference,
        charge.processor,
        charge.kind,
        charge.state,
        charge.amountKobo,
        invoiceKey,
        charge.cardKey,
        charge.createdAt,
        charge.sentAt,
        charge.lookUpAt,
        charge.settledAt,
        charge.transactionId,
      ),
    );

  function writePeriod(accountKey: number, { ends, starts, at }: PeriodChange): void {
    if (ends !== null) endPeriod.run(ends, at);
    if (starts !== null) startPeriod.run(accountKey, starts, at);
  }

  /** Rows that give something up are written before those that take it: days, an invoice's one open charge, the one open page. */
  function apply({ tx, account: { key: accountKey }, held }: LoadedBooks, change: BooksChange): void {
    const { account, verification, addsVerification, addsCharge, addsInvoice, period } = change;
    const card = change.addsCard ? addCard(accountKey, change.addsCard) : null;
    for (const { key, ...fields } of change.cards ?? []) patchCard(key, fields);
    for (const { key, login, ...fields } of change.invoices ?? []) {
      patchInvoice(key, fields);
      if (login === null) forgetLogin.run(key);
    }
    for (const key of change.freesDaysOf ?? []) freeDays.run(key);
    for (const { key, cardKey, ...fields } of change.charges ?? []) {
      patchCharge(key, { ...fields, ...(cardKey !== undefined && { cardKey: rowKey(cardKey, card) }) });
    }
    const invoice = addsInvoice ? addInvoice(accountKey, addsInvoice) : null;
    const charge = addsCharge ? addCharge(accountKey, addsCharge, rowKey(addsCharge.invoiceKey, invoice)) : null;
    if (verification) {
      const { key, chargeKey, ...fields } = verification;
      patchVerification(key, { ...fields, ...(chargeKey !== undefined && { chargeKey: rowKey(chargeKey, charge) }) });
    }
    if (addsVerification) {
      const { token, createdAt, chargeKey } = addsVerification;
      insertVerification.run(accountKey, token, createdAt, chargeKey);
    }
    if (account) {
      const { cardKey, ...fields } = account;
      patchAccount(accountKey, { ...fields, ...(cardKey !== undefined && { cardKey: rowKey(cardKey, card) }) });
    }
    if (change.removesCard !== undefined) deleteCard.run(change.removesCard);
    if (period) writePeriod(accountKey, period);
    if (held && change.tenant) tenants.change(tx, held, change.tenant);
  }

  const toOpenInvoice = (
    { newEmail, newPasswordHash, ...invoice }: InvoiceRow,
    tenant: Tenant | null,
    now: number,
  ): OpenInvoice => {
    const isOrdered = newEmail !== null && newPasswordHash !== null;
    const ordered = isOrdered ? { email: newEmail, passwordHash: newPasswordHash } : null;
    const login = loginOfUpgrade(tenant, invoice.targetTier, ordered);
    if (!login) return { ...invoice, login };
    const holder = tenants.keeperOf(login.email.toLowerCase(), now);
    return { ...invoice, login: { ...login, isTaken: isTaken(holder, tenant?.key ?? null) } };
  };

  return {
    load(tx, accountKey) {
      const account: AccountRow = billing.account(accountKey);
      const { tenantKey } = account;
      const held = tenantKey === null ? null : hold(tx, tenantKey);
      const living = held?.gone ? null : held;
      return {
        tx,
        account,
        held: living,
        tenant: living?.tenant ?? null,
        verification: billing.verificationOf(accountKey),
        card: billing.cardInUse(account),
        charges: billing.openCharges(accountKey),
        invoices: billing
          .openInvoices(accountKey)
          .map((invoice) => toOpenInvoice(invoice, living?.tenant ?? null, tx.now)),
        period: billing.openPeriod(accountKey),
      };
    },
    write(books, change, now) {
      if (!change) return;
      apply(books, change);
      touch.run(books.account.key, now);
    },
    writeCharge(accountKey, change, now) {
      if (!change) return;
      const { key, cardKey: _, ...fields } = change;
      patchCharge(key, fields);
      touch.run(accountKey, now);
    },
    recordPlan(tenant, now) {
      const account = billing.accountOf(tenant.key);
      const period = account && changePeriod({ account, tenant, period: billing.openPeriod(account.key) }, now);
      if (period) writePeriod(account.key, period);
    },
  };
}

const keyOf = ({ lastInsertRowid }: { lastInsertRowid: number | bigint }): number => Number(lastInsertRowid);

const rowKey = (key: RowKey | null, added: number | null): number | null => (key === "added" ? added : key);
