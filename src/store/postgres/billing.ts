import { and, asc, desc, eq, gt, isNotNull, isNull, lte, or } from "drizzle-orm";
import type { Charge } from "../../domain/books.ts";
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
import type { BillingVerbs, Books } from "../billing.ts";
import {
  accountByKey,
  accountOf,
  cardColumns,
  chargeColumns,
  chargeOf,
  openInvoicesOf,
  openVerificationOf,
  required,
  verificationColumns,
} from "./billing-rows.ts";
import * as t from "./billing-schema.ts";
import type { Connection } from "./connection.ts";
import { hold, tenantColumns } from "./held-tenants.ts";
import { type LoadedBooks, loadBooks, lockCharge, openBooksOf, writeBooks, writeCharge } from "./open-books.ts";
import type { Transaction } from "./pool.ts";
import { tenant } from "./schema.ts";
import { holderOf } from "./tenant-rows.ts";
import type { WriteTransaction } from "./writes.ts";

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
  | "dueAccounts"
  | "postpone"
  | "planDays"
  | "chargeHistory"
>;

/** Verifications, their pages, and what the biller reads to know what there is to do. */
export function billingVerbs({ pool, writes }: Connection): Verbs {
  /** The books of the account that a verification is of; null when there is no such one. */
  async function fileOf(tx: WriteTransaction, verificationKey: number): Promise<LoadedBooks | null> {
    const [row] = await tx.db
      .select({ accountKey: t.cardVerification.accountKey })
      .from(t.cardVerification)
      .where(eq(t.cardVerification.key, verificationKey));
    return row ? loadBooks(tx, row.accountKey) : null;
  }

  async function fileOfCard(tx: WriteTransaction, cardKey: number): Promise<LoadedBooks | null> {
    const [row] = await tx.db
      .select({ accountKey: t.savedCard.accountKey })
      .from(t.savedCard)
      .where(eq(t.savedCard.key, cardKey));
    return row ? loadBooks(tx, row.accountKey) : null;
  }

  return {
    openVerification: (tenantKey, ids, upgrade, now) =>
      writes.submit(async (tx) => {
        const held = await hold(tx, tenantKey);
        const holder = upgrade?.login ? await holderOf(tx, upgrade.login.email.toLowerCase()) : null;
        const refusal = refusalOfVerification(held, isTaken(holder, tenantKey));
        if (refusal) throw refusal;
        const file = await openBooksOf(tx, tenantKey, held, ids.accountId);
        await writeBooks(file, openVerification(file, ids.token, upgrade, now), now);
        const verification = required(await openVerificationOf(tx, file.account.key), "The open verification");
        return { tenant: held.tenant, verification };
      }),

    async findVerification(token) {
      const [found] = await pool.db
        .select({ verification: verificationColumns, tenant: tenantColumns })
        .from(t.cardVerification)
        .innerJoin(t.billingAccount, eq(t.billingAccount.key, t.cardVerification.accountKey))
        .innerJoin(tenant, eq(tenant.key, t.billingAccount.tenantKey))
        .where(and(eq(t.cardVerification.token, token), isNull(tenant.deletedAt)));
      return found ?? null;
    },

    billingAccountOf: async (tenantKey) => (await accountOf(pool, tenantKey))?.key ?? null,

    books: (accountKey) => pool.snapshot((tx) => readBooks(tx, accountKey)),

    preparePage: (verificationKey, charge, now) =>
      writes.submit(async (tx): Promise<Charge | null> => {
        const file = await fileOf(tx, verificationKey);
        const change = file && openPage(file, verificationKey, charge, now);
        if (!change) return null;
        await writeBooks(file, change, now);
        return chargeOf(tx, charge.reference);
      }),

    setPage: (reference, pageUrl, now) =>
      writes.submit(async (tx) => {
        const charge = required(await lockCharge(tx, reference), "The charge");
        await writeCharge(tx, charge, { key: charge.key, pageUrl }, now);
      }),

    dropPage: (verificationKey, now) =>
      writes.submit(async (tx) => {
        const file = await fileOf(tx, verificationKey);
        if (file) await writeBooks(file, dropPage(file, verificationKey, now), now);
      }),

    giveUpVerification: (verificationKey, now) =>
      writes.submit(async (tx): Promise<Tenant | null> => {
        const file = await fileOf(tx, verificationKey);
        const change = file && giveUpVerification(file, verificationKey, now);
        if (!change) return null;
        await writeBooks(file, change, now);
        return file.held?.tenant ?? null;
      }),

    cardForgotten: (cardKey, now) =>
      writes.submit(async (tx) => {
        const file = await fileOfCard(tx, cardKey);
        if (file) await writeBooks(file, removeCard(file, cardKey), now);
      }),

    forgetCardLater: (cardKey, forgetAt, now) =>
      writes.submit(async (tx) => {
        const file = await fileOfCard(tx, cardKey);
        if (file) await writeBooks(file, { cards: [{ key: cardKey, forgetAt }] }, now);
      }),

    dueAccounts: (now, limit) =>
      pool.snapshot(async ({ db }) => {
        const { key, version, dueAt } = t.billingAccount;
        const accounts = await db
          .select({ key, version })
          .from(t.billingAccount)
          .where(lte(dueAt, now))
          .orderBy(asc(dueAt))
          .limit(limit);
        const [next] = await db
          .select({ at: dueAt })
          .from(t.billingAccount)
          .where(gt(dueAt, now))
          .orderBy(asc(dueAt))
          .limit(1);
        return { accounts, nextAt: next?.at ?? null };
      }),

    async postpone(accountKey, version, at) {
      await pool.write("update billing_account set due_at = $3::bigint where key = $1::bigint and version = $2::int", [
        accountKey,
        version,
        at,
      ]);
    },

    planDays: (accountKey) =>
      pool.snapshot(async ({ db }) => {
        const { tier, startedAt, endedAt } = t.planPeriod;
        const periods = await db
          .select({ tier, startedAt, endedAt })
          .from(t.planPeriod)
          .where(eq(t.planPeriod.accountKey, accountKey))
          .orderBy(asc(t.planPeriod.key));
        const days = await db
          .select({ day: t.invoiceDay.day, state: t.invoice.state })
          .from(t.invoiceDay)
          .innerJoin(t.invoice, eq(t.invoice.key, t.invoiceDay.invoiceKey))
          .where(eq(t.invoiceDay.accountKey, accountKey));
        return { periods, invoiced: new Map(days.map(({ day, state }) => [day, state as "open" | "paid"])) };
      }),

    chargeHistory: (accountKey, limit) =>
      pool.db
        .select(chargeColumns)
        .from(t.charge)
        .where(eq(t.charge.accountKey, accountKey))
        .orderBy(desc(t.charge.key))
        .limit(limit),
  };
}

async function readBooks(tx: Transaction, accountKey: number): Promise<Books> {
  const account = await accountByKey(tx, accountKey);
  const cards = await tx.db
    .select(cardColumns)
    .from(t.savedCard)
    .where(eq(t.savedCard.accountKey, accountKey))
    .orderBy(asc(t.savedCard.key));
  const { state, lookUpAt, refundAt, key } = t.charge;
  return {
    account,
    tenant: account.tenantKey === null ? null : await livingTenant(tx, account.tenantKey),
    verification: await openVerificationOf(tx, accountKey),
    card: cards.find((card) => card.key === account.cardKey) ?? null,
    cardsToForget: cards.filter(({ forgetAt }) => forgetAt !== null),
    charges: await tx.db
      .select(chargeColumns)
      .from(t.charge)
      .where(and(eq(t.charge.accountKey, accountKey), or(eq(state, "open"), isNotNull(lookUpAt), isNotNull(refundAt))))
      .orderBy(asc(key)),
    invoices: await openInvoicesOf(tx, accountKey),
    version: account.version,
  };
}

async function livingTenant({ db }: Transaction, tenantKey: number): Promise<Tenant | null> {
  const [row] = await db
    .select(tenantColumns)
    .from(tenant)
    .where(and(eq(tenant.key, tenantKey), isNull(tenant.deletedAt)));
  return row ?? null;
}
