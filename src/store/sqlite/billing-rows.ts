import type { Database } from "bun:sqlite";
import type { BillingAccount, CardVerification, Charge, Invoice, InvoiceLine } from "../../domain/books.ts";
import type { OpenBooks, OpenPeriod } from "../../domain/books-change.ts";

/** A billing account as its row stores it. */
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

type CardInUse = NonNullable<OpenBooks["card"]>;

/**
 * What several payment verbs read, inside the caller's transaction. A month's end reads and writes about ten rows per account,
 * so these are plain prepared SQL.
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
  const openPeriod = client.prepare<OpenPeriod, [number]>(
    "select key, tier from plan_period where account_key = ?1 and ended_at is null",
  );
  const verificationOf = client.prepare<CardVerification, [number]>(
    `select ${verificationColumns} from card_verification where account_key = ?1 and state = 'open'`,
  );
  const verificationByKey = client.prepare<CardVerification, [number]>(
    `select ${verificationColumns} from card_verification where key = ?1`,
  );
  const verificationByToken = client.prepare<CardVerification, [string]>(
    `select ${verificationColumns} from card_verification where token = ?1`,
  );
  const chargeByKey = client.prepare<Charge, [number]>(`select ${chargeColumns} from charge where key = ?1`);
  const chargeByReference = client.prepare<Charge, [string]>(
    `select ${chargeColumns} from charge where reference = ?1`,
  );
  // A bare `?1` together with ORDER BY makes SQLite 3.54 recompile the statement each time it is bound, which takes longer than
  // running it (15 µs versus 1); `+?1` does not.
  const openCharges = client.prepare<Charge, [number]>(
    `select ${chargeColumns} from charge where account_key = +?1 and state = 'open' order by key`,
  );
  const invoiceByKey = client.prepare<{ accountKey: number }, [number]>(
    "select account_key as accountKey from invoice where key = ?1",
  );
  const openInvoices = client.prepare<Omit<InvoiceRow, "lines"> & { lines: string }, [number]>(
    `select ${invoiceColumns} from invoice where account_key = +?1 and state = 'open' order by key`,
  );
  const cardInUse = client.prepare<CardInUse, [number]>(
    "select key, processor, signature from saved_card where key = ?1",
  );

  function required<T>(row: T | null, what: string): T {
    if (row === null) throw new Error(`${what} does not exist`);
    return row;
  }

  return {
    account: (key: number): AccountRow => required(accountByKey.get(key), `Billing account ${key}`),
    accountOf: (tenantKey: number): AccountRow | null => accountByTenant.get(tenantKey),
    openAccount: (tenantKey: number, id: string): AccountRow =>
      accountByTenant.get(tenantKey) ?? required(insertAccount.get(id, tenantKey), "A new billing account"),
    openPeriod: (accountKey: number) => openPeriod.get(accountKey),

    verificationOf: (accountKey: number) => verificationOf.get(accountKey),
    requiredVerificationOf: (accountKey: number) => required(verificationOf.get(accountKey), "The open verification"),
    verification: (key: number) => verificationByKey.get(key),
    verificationByToken: (token: string) => verificationByToken.get(token),

    charge: (key: number): Charge => required(chargeByKey.get(key), `Charge ${key}`),
    chargeOf: (reference: string): Charge | null => chargeByReference.get(reference),
    requiredCharge: (reference: string): Charge => required(chargeByReference.get(reference), "The charge"),
    openCharges: (accountKey: number): Charge[] => openCharges.all(accountKey),

    accountOfInvoice: (key: number): number => required(invoiceByKey.get(key), `Invoice ${key}`).accountKey,
    openInvoices: (accountKey: number): InvoiceRow[] =>
      openInvoices.all(accountKey).map((row) => ({ ...row, lines: JSON.parse(row.lines) as InvoiceLine[] })),

    cardInUse: ({ cardKey }: AccountRow): CardInUse | null => (cardKey === null ? null : cardInUse.get(cardKey)),
  };
}

export type BillingRows = ReturnType<typeof createBillingRows>;
