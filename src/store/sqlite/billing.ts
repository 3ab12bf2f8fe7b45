import { actsOfUpgrade } from "../../domain/audit.ts";
import type { CardVerification, Charge, PlanPeriod, SavedCard } from "../../domain/books.ts";
import { removeCard } from "../../domain/charges.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { isTaken } from "../../domain/tenant-change.ts";
import {
  dropPage,
  giveUpVerification,
  openPage,
  openVerification,
  refusalOfVerification,
} from "../../domain/verifications.ts";
import type { BillingVerbs, Books, DueAccount } from "../billing.ts";
import { type AccountRow, chargeColumns } from "./billing-rows.ts";
import type { Connection } from "./connection.ts";
import { livingTenant } from "./held-tenants.ts";
import type { LoadedBooks } from "./open-books.ts";
import { createTenantRows } from "./tenant-rows.ts";
import { refuse, type WriteTransaction } from "./transaction.ts";

type Verbs = Pick<
  BillingVerbs,
  | "openVerification"
  | "findVerification"
  | "billingAccountOf"
  | "books"
  | "preparePage"
  | "setPage"
  | "dropPage"
  | "giveUpVerification"
  | "cardForgotten"
  | "forgetCardLater"
  | "accountsToClose"
  | "dueAccounts"
  | "postpone"
  | "planDays"
  | "chargeHistory"
  | "latestPaidUpgrade"
>;

type CardRow = Omit<SavedCard, "refused"> & { refused: number };

const cardColumns = `key, processor, sealed, created_at as savedAt, signature, brand, last4, exp_month as expMonth, exp_year as expYear, refused,
  forget_at as forgetAt`;

/** Verifications, their pages, and what the biller reads to find out what to do. */
export function billingVerbs({ client, writer, hold, billing, books, audit }: Connection): Verbs {
  const tenants = createTenantRows(client);
  const tenantByKey = livingTenant(client);
  // `+?1`: see `openCharges`.
  const unfinishedCharges = client.prepare<Charge, [number]>(
    `select ${chargeColumns} from charge
     where account_key = +?1 and (state = 'open' or look_up_at is not null or refund_at is not null) order by key`,
  );
  const cardsOf = client.prepare<CardRow, [number]>(
    `select ${cardColumns} from saved_card where account_key = +?1 order by key`,
  );
  const chargesOf = client.prepare<Charge, [number, number]>(
    `select ${chargeColumns} from charge where account_key = +?1 order by key desc limit ?2`,
  );
  const paidUpgradeOf = client.prepare<Charge, [number]>(
    `select ${chargeColumns} from charge where account_key = +?1 and kind = 'upgrade' and state = 'succeeded'
     order by key desc limit 1`,
  );
  const periodsOf = client.prepare<PlanPeriod, [number]>(
    `select tier, started_at as startedAt, ended_at as endedAt from plan_period where account_key = +?1 order by key`,
  );
  const invoicedDays = client.prepare<{ day: number; state: "open" | "paid" }, [number]>(
    `select invoice_day.day, invoice.state from invoice_day join invoice on invoice.key = invoice_day.invoice_key
     where invoice_day.account_key = ?1`,
  );
  const accountOfCard = client.prepare<{ accountKey: number }, [number]>(
    "select account_key as accountKey from saved_card where key = ?1",
  );
  const toClose = client.prepare<{ key: number }, [number]>(
    `select key from billing_account where tenant_key is null and (state = 'closing'
       or exists (select 1 from saved_card where account_key = billing_account.key)) order by key limit ?1`,
  );
  const due = client.prepare<DueAccount, [number, number]>(
    "select key, version from billing_account where due_at <= ?1 order by due_at limit ?2",
  );
  const nextDue = client.prepare<{ at: number | null }, [number]>(
    "select min(due_at) as at from billing_account where due_at > ?1",
  );
  const setDue = client.prepare<null, [number, number, number | null]>(
    "update billing_account set due_at = ?3 where key = ?1 and version = ?2",
  );

  /** Six reads in one transaction: done separately, each would lock the log and look up its end again. */
  const readTogether = client.transaction(readBooks);

  function readBooks(accountKey: number): Books {
    const account = billing.account(accountKey);
    const cards = cardsOf.all(accountKey).map(({ refused, ...card }) => ({ ...card, refused: refused !== 0 }));
    return {
      account,
      tenant: tenantOf(account),
      verification: billing.verificationOf(accountKey),
      card: cards.find(({ key }) => key === account.cardKey) ?? null,
      cardsToForget: cards.filter(({ forgetAt }) => forgetAt !== null),
      charges: unfinishedCharges.all(accountKey),
      invoices: billing.openInvoices(accountKey),
      version: account.version,
    };
  }

  /** The books of the account that a verification belongs to; null when there is no such verification. */
  function fileOf(tx: WriteTransaction, verificationKey: number): LoadedBooks | null {
    const verification = billing.verification(verificationKey);
    return verification && books.load(tx, verification.accountKey);
  }

  function fileOfCard(tx: WriteTransaction, cardKey: number): LoadedBooks | null {
    const card = accountOfCard.get(cardKey);
    return card && books.load(tx, card.accountKey);
  }

  const tenantOf = ({ tenantKey }: AccountRow): Tenant | null =>
    tenantKey === null ? null : tenantByKey.get(tenantKey);

  return {
    openVerification: (tenantKey, ids, upgrade, now, by) =>
      writer.submit<{ tenant: Tenant; verification: CardVerification }>((tx) => {
        const held = hold(tx, tenantKey);
        const holder = upgrade?.login ? tenants.keeperOf(upgrade.login.email.toLowerCase(), tx.now) : null;
        const refusal = refusalOfVerification(held, upgrade, isTaken(holder, tenantKey));
        if (refusal) return refuse(refusal);
        const file = books.load(tx, billing.openAccount(tenantKey, ids.accountId).key);
        const before = held.tenant;
        const change = openVerification(file, ids.token, upgrade, now);
        books.write(file, change, now);
        for (const act of by ? actsOfUpgrade(before, change.tenant ?? {}, by) : []) audit.note(tx, before.id, act);
        return { tenant: held.tenant, verification: billing.requiredVerificationOf(file.account.key) };
      }),

    async findVerification(token) {
      const verification = billing.verificationByToken(token);
      if (!verification) return null;
      const tenant = tenantOf(billing.account(verification.accountKey));
      return tenant && { verification, tenant };
    },

    billingAccountOf: async (tenantKey) => billing.accountOf(tenantKey)?.key ?? null,

    books: async (accountKey) => readTogether(accountKey),

    preparePage: (verificationKey, charge, now) =>
      writer.submit<Charge | null>((tx) => {
        const file = fileOf(tx, verificationKey);
        const change = file && openPage(file, verificationKey, charge, now);
        if (!change || billing.chargeOf(charge.reference)) return null;
        books.write(file, change, now);
        return billing.requiredCharge(charge.reference);
      }),

    setPage: (reference, pageUrl, now) =>
      writer.submit<void>(() => {
        const { key, accountKey } = billing.requiredCharge(reference);
        books.writeCharge(accountKey, { key, pageUrl, reason: null }, now);
      }),

    dropPage: (verificationKey, now) =>
      writer.submit<void>((tx) => {
        const file = fileOf(tx, verificationKey);
        if (file) books.write(file, dropPage(file, verificationKey, now), now);
      }),

    giveUpVerification: (verificationKey, now) =>
      writer.submit<Tenant | null>((tx) => {
        const file = fileOf(tx, verificationKey);
        const change = file && giveUpVerification(file, verificationKey, now);
        if (!change) return null;
        books.write(file, change, now);
        return file.held?.tenant ?? null;
      }),

    cardForgotten: (cardKey, now) =>
      writer.submit<void>((tx) => {
        const file = fileOfCard(tx, cardKey);
        if (file) books.write(file, removeCard(file, cardKey), now);
      }),

    forgetCardLater: (cardKey, forgetAt, now) =>
      writer.submit<void>((tx) => {
        const file = fileOfCard(tx, cardKey);
        if (file) books.write(file, { cards: [{ key: cardKey, forgetAt }] }, now);
      }),

    accountsToClose: async (limit) => toClose.all(limit).map(({ key }) => key),

    dueAccounts: async (now, limit) => ({
      accounts: due.all(now, limit),
      nextAt: nextDue.get(now)?.at ?? null,
    }),

    postpone: (accountKey, version, at) => writer.submit<void>(() => void setDue.run(accountKey, version, at)),

    planDays: async (accountKey) => ({
      periods: periodsOf.all(accountKey),
      invoiced: new Map(invoicedDays.all(accountKey).map(({ day, state }) => [day, state])),
    }),

    chargeHistory: async (accountKey, limit) => chargesOf.all(accountKey, limit),

    latestPaidUpgrade: async (accountKey) => paidUpgradeOf.get(accountKey),
  };
}
