import type { Database } from "bun:sqlite";
import type {
  BillingAccount,
  CardVerification,
  Charge,
  Invoice,
  InvoiceLine,
  NewCard,
  NewCharge,
  NewInvoice,
} from "../../domain/books.ts";
import type { Tenant, Tier } from "../../domain/tenant.ts";

/** A billing account as its row has it. */
export interface AccountRow extends BillingAccount {
  readonly cardKey: number | null;
  readonly version: number;
}

export interface InvoiceRow extends Invoice {
  readonly newEmail: string | null;
  readonly newPasswordHash: string | null;
}

const accountColumns = `key, id, tenant_key as tenantKey, state, verified_at as verifiedAt, credit_kobo as creditKobo,
  next_invoice_at as nextInvoiceAt, card_key as cardKey, version`;

const verificationColumns = `key, account_key as accountKey, token, state, created_at as createdAt, charge_key as chargeKey`;

const invoiceColumns = `key, account_key as accountKey, id, kind, state, lines, total_kobo as totalKobo, credit_used_kobo as creditUsedKobo,
  amount_kobo as amountKobo, attempts, first_failed_at as firstFailedAt, next_attempt_at as nextAttemptAt,
  target_tier as targetTier, new_email as newEmail, new_password_hash as newPasswordHash`;

export const chargeColumns = `key, account_key as accountKey, reference, processor, kind, state, amount_kobo as amountKobo,
  invoice_key as invoiceKey, card_key as cardKey, created_at as createdAt, sent_at as sentAt, resend_at as resendAt,
  look_ups as lookUps, look_up_at as lookUpAt, page_url as pageUrl, settled_at as settledAt, reason, refund,
  refund_at as refundAt`;

/** How long a page that was left behind is looked at again at the latest, should it have no time of its own. */
const watchAgainMs = 60 * 60 * 1000;

/**
 * The statements that several verbs of payments share. They run inside the caller's transaction; a month's end writes some
 * ten rows an account, so they are plain prepared SQL.
 */
export function createBillingRows(client: Database) {
  const accountByKey = client.prepare<AccountRow, [number]>(
    `select ${accountColumns} from billing_account where key = ?1`,
  );
  const accountByTenant = client.prepare<AccountRow, [number]>(
    `select ${accountColumns} from billing_account where tenant_key = ?1`,
  );
  const insertAccount = client.prepare<AccountRow, [string, number]>(
    `insert into billing_account (id, tenant_key, state) values (?1, ?2, 'active') returning ${accountColumns}`,
  );
  const touchAccount = client.prepare<null, [number, number]>(
    "update billing_account set due_at = ?2, version = version + 1 where key = ?1",
  );
  const closeAccount = client.prepare<null, [number, number]>(
    `update billing_account set tenant_key = null, state = 'closing',
       next_invoice_at = case when verified_at is null then null else ?2 end where key = ?1`,
  );
  const addCredit = client.prepare<null, [number, number]>(
    "update billing_account set credit_kobo = credit_kobo + ?2 where key = ?1",
  );
  const openPeriod = client.prepare<{ key: number; tier: Tier }, [number]>(
    "select key, tier from plan_period where account_key = ?1 and ended_at is null",
  );
  const startPeriod = client.prepare<null, [number, string, number]>(
    "insert into plan_period (account_key, tier, started_at) values (?1, ?2, ?3)",
  );
  const endPeriod = client.prepare<null, [number, number]>("update plan_period set ended_at = ?2 where key = ?1");

  const verificationOf = client.prepare<CardVerification, [number]>(
    `select ${verificationColumns} from card_verification where account_key = ?1 and state = 'open'`,
  );
  const verificationByKey = client.prepare<CardVerification, [number]>(
    `select ${verificationColumns} from card_verification where key = ?1`,
  );
  const verificationByToken = client.prepare<CardVerification, [string]>(
    `select ${verificationColumns} from card_verification where token = ?1`,
  );
  const verificationByCharge = client.prepare<CardVerification, [number, number]>(
    `select ${verificationColumns} from card_verification where account_key = ?1 and charge_key = ?2 and state = 'open'`,
  );
  const insertVerification = client.prepare<CardVerification, [number, string, number]>(
    `insert into card_verification (account_key, token, state, created_at) values (?1, ?2, 'open', ?3)
     returning ${verificationColumns}`,
  );
  const setVerificationState = client.prepare<null, [number, string]>(
    "update card_verification set state = ?2 where key = ?1",
  );
  const setVerificationCharge = client.prepare<null, [number, number | null]>(
    "update card_verification set charge_key = ?2 where key = ?1",
  );

  const chargeByKey = client.prepare<Charge, [number]>(`select ${chargeColumns} from charge where key = ?1`);
  const chargeByReference = client.prepare<Charge, [string]>(
    `select ${chargeColumns} from charge where reference = ?1`,
  );
  const insertCharge = client.prepare<
    Charge,
    [number, string, string, string, number, number | null, number | null, number, number | null, number | null]
  >(
    `insert into charge (account_key, reference, processor, kind, state, amount_kobo, invoice_key, card_key, created_at,
       sent_at, look_up_at)
     values (?1, ?2, ?3, ?4, 'open', ?5, ?6, ?7, ?8, ?9, ?10) returning ${chargeColumns}`,
  );
  const supersedeCharge = client.prepare<null, [number, number, number]>(
    `update charge set state = 'superseded', settled_at = ?2, look_up_at = coalesce(look_up_at, ?3)
     where key = ?1 and state = 'open'`,
  );
  const refundDue = client.prepare<null, [number, number, string | null]>(
    `update charge set refund = 'due', refund_at = ?2, look_up_at = null, transaction_id = coalesce(?3, transaction_id)
     where key = ?1`,
  );

  const invoiceByKey = client.prepare<Omit<InvoiceRow, "lines"> & { lines: string }, [number]>(
    `select ${invoiceColumns} from invoice where key = ?1`,
  );
  // `+?1`: see `unfinishedCharges`.
  const openInvoices = client.prepare<Omit<InvoiceRow, "lines"> & { lines: string }, [number]>(
    `select ${invoiceColumns} from invoice where account_key = +?1 and state = 'open' order by key`,
  );
  const insertInvoice = client.prepare<
    { key: number },
    [
      string,
      number,
      string,
      string,
      number,
      number,
      number,
      number | null,
      number,
      string | null,
      string | null,
      string | null,
    ]
  >(
    `insert into invoice (id, account_key, kind, state, lines, total_kobo, credit_used_kobo, amount_kobo,
       next_attempt_at, created_at, target_tier, new_email, new_password_hash)
     values (?1, ?2, ?3, 'open', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) returning key`,
  );
  const insertDay = client.prepare<null, [number, number, number, string]>(
    "insert into invoice_day (account_key, day, invoice_key, tier) values (?1, ?2, ?3, ?4)",
  );
  const markVoid = client.prepare<null, [number]>(
    `update invoice set state = 'void', next_attempt_at = null, new_email = null, new_password_hash = null
     where key = ?1 and state = 'open'`,
  );
  const deleteDays = client.prepare<null, [number]>("delete from invoice_day where invoice_key = ?1");
  const insertCard = client.prepare<
    { key: number },
    [number, string, Uint8Array, string | null, string, string, string, string, number | null, number]
  >(
    `insert into saved_card (account_key, processor, sealed, signature, brand, last4, exp_month, exp_year, forget_at,
       created_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) returning key`,
  );

  const withLines = (row: Omit<InvoiceRow, "lines"> & { lines: string }): InvoiceRow => ({
    ...row,
    lines: JSON.parse(row.lines) as InvoiceLine[],
  });

  function required<T>(row: T | null, what: string): T {
    if (row === null) throw new Error(`${what} does not exist`);
    return row;
  }

  const rows = {
    account: (key: number): AccountRow => required(accountByKey.get(key), `Billing account ${key}`),
    accountOf: (tenantKey: number): AccountRow | null => accountByTenant.get(tenantKey),
    openAccount: (tenantKey: number, id: string): AccountRow =>
      accountByTenant.get(tenantKey) ?? required(insertAccount.get(id, tenantKey), "A new billing account"),
    /** Something has changed: the biller looks at the account again. */
    touch: (accountKey: number, now: number) => void touchAccount.run(accountKey, now),
    addCredit: (accountKey: number, kobo: number) => void (kobo !== 0 && addCredit.run(accountKey, kobo)),

    verificationOf: (accountKey: number) => verificationOf.get(accountKey),
    verification: (key: number) => verificationByKey.get(key),
    verificationByToken: (token: string) => verificationByToken.get(token),
    /** The open verification whose page pays this charge. */
    verificationByCharge: (accountKey: number, chargeKey: number) => verificationByCharge.get(accountKey, chargeKey),
    openVerification: (accountKey: number, token: string, now: number): CardVerification =>
      verificationOf.get(accountKey) ?? required(insertVerification.get(accountKey, token, now), "A new verification"),
    endVerification: (key: number, state: "succeeded" | "given_up") => void setVerificationState.run(key, state),
    setVerificationCharge: (key: number, chargeKey: number | null) => void setVerificationCharge.run(key, chargeKey),

    charge: (key: number): Charge => required(chargeByKey.get(key), `Charge ${key}`),
    chargeOf: (reference: string): Charge | null => chargeByReference.get(reference),
    requiredCharge: (reference: string): Charge => required(chargeByReference.get(reference), "The charge"),
    addCharge: (
      accountKey: number,
      kind: Charge["kind"],
      charge: NewCharge,
      invoiceKey: number | null,
      now: number,
    ): Charge => {
      const { reference, processor, amountKobo, cardKey, lookUpAt } = charge;
      const sentAt = kind === "verification" ? now : null;
      return required(
        insertCharge.get(
          accountKey,
          reference,
          processor,
          kind,
          amountKobo,
          invoiceKey,
          cardKey,
          now,
          sentAt,
          lookUpAt,
        ),
        "A new charge",
      );
    },
    /** Leaves an open charge behind. It is still looked up: should it be paid after all, the money goes back. */
    supersede(charge: Charge, now: number): void {
      if (charge.state !== "open") return;
      supersedeCharge.run(charge.key, now, now + watchAgainMs);
      if (charge.kind === "upgrade" && charge.invoiceKey !== null)
        rows.voidInvoice(charge.accountKey, charge.invoiceKey);
    },
    refund: (chargeKey: number, now: number, transactionId: string | null) =>
      void refundDue.run(chargeKey, now, transactionId),

    invoice: (key: number): InvoiceRow => withLines(required(invoiceByKey.get(key), `Invoice ${key}`)),
    openInvoices: (accountKey: number): InvoiceRow[] => openInvoices.all(accountKey).map(withLines),
    addInvoice(
      accountKey: number,
      invoice: NewInvoice,
      upgrade: { tier: Tier; email: string | null; passwordHash: string | null } | null,
      now: number,
    ): number {
      const { key } = required(
        insertInvoice.get(
          invoice.id,
          accountKey,
          invoice.kind,
          JSON.stringify(invoice.lines),
          invoice.totalKobo,
          invoice.creditUsedKobo,
          invoice.amountKobo,
          invoice.kind === "subscription" ? now : null,
          now,
          upgrade?.tier ?? null,
          upgrade?.email ?? null,
          upgrade?.passwordHash ?? null,
        ),
        "A new invoice",
      );
      for (const { day, tier } of invoice.days) insertDay.run(accountKey, day, key, tier);
      rows.addCredit(accountKey, -invoice.creditUsedKobo);
      return key;
    },
    /** Lets go of the days of an open invoice, and gives back the credit that it used. */
    voidInvoice(accountKey: number, invoiceKey: number): void {
      const invoice = rows.invoice(invoiceKey);
      if (invoice.state !== "open") return;
      markVoid.run(invoiceKey);
      deleteDays.run(invoiceKey);
      rows.addCredit(accountKey, invoice.creditUsedKobo);
    },

    addCard(accountKey: number, card: NewCard, forgetAt: number | null, now: number): number {
      const { processor, sealed, signature, brand, last4, expMonth, expYear } = card;
      return required(
        insertCard.get(accountKey, processor, sealed, signature, brand, last4, expMonth, expYear, forgetAt, now),
        "A new card",
      ).key;
    },

    /**
     * Keeps the record of plans true to the tenant: a paid plan counts from the first verified card on, and not while the
     * account is suspended, when it cannot be used.
     */
    recordPlan(account: AccountRow, tenant: Tenant | null, now: number): void {
      const isUsable = tenant !== null && tenant.operatorSuspendedAt === null && tenant.paymentSuspendedAt === null;
      const held =
        isUsable && account.verifiedAt !== null && tenant.enforcedTier !== "free" ? tenant.enforcedTier : null;
      const open = openPeriod.get(account.key);
      if ((open?.tier ?? null) === held) return;
      if (open) endPeriod.run(open.key, now);
      if (held !== null) startPeriod.run(account.key, held, now);
    },

    /** The tenant was deleted: from here on the account is nobody's, and what is left to do is done in the background. */
    leaveTenant(account: AccountRow, now: number): void {
      rows.closeVerification(account.key, now);
      rows.recordPlan(account, null, now);
      closeAccount.run(account.key, now);
      rows.touch(account.key, now);
    },

    /** Closes the open verification, if there is one; a payment that comes for its page is given back. */
    closeVerification(accountKey: number, now: number): void {
      const verification = verificationOf.get(accountKey);
      if (!verification) return;
      setVerificationState.run(verification.key, "given_up");
      rows.leavePage(verification, now);
    },

    /** Leaves the page behind. A month's end charge that waits for a confirmation stays: its days are owed all the same. */
    leavePage(verification: CardVerification, now: number): void {
      if (verification.chargeKey === null) return;
      const charge = rows.charge(verification.chargeKey);
      if (charge.kind !== "subscription") rows.supersede(charge, now);
    },
  };
  return rows;
}

export type BillingRows = ReturnType<typeof createBillingRows>;
