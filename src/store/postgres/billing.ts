import { and, desc, eq, isNull } from "drizzle-orm";
import { actsOfUpgrade } from "../../domain/audit.ts";
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
import { noteAct } from "./audit.ts";
import {
  accountOf,
  booksRows,
  chargeColumns,
  chargeOf,
  openVerificationOf,
  required,
  verificationColumns,
} from "./billing-rows.ts";
import * as t from "./billing-schema.ts";
import type { Connection } from "./connection.ts";
import { hold, tenantColumns } from "./held-tenants.ts";
import { type LoadedBooks, loadBooks, lockCharge, openBooksOf, writeBooks, writeCharge } from "./open-books.ts";
import type { Pool } from "./pool.ts";
import { tenant } from "./schema.ts";
import { lockKeeper } from "./tenant-rows.ts";
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
  | "accountsToClose"
  | "dueAccounts"
  | "postpone"
  | "planDays"
  | "chargeHistory"
  | "latestPaidUpgrade"
>;

/** Verifications, their pages, and what the biller reads to learn what there is to do. */
export function billingVerbs({ pool, writes }: Connection): Verbs {
  /** The books of the account that a verification belongs to; null when there is no such verification. */
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
    openVerification: (tenantKey, ids, upgrade, now, by) =>
      writes.submit(async (tx) => {
        const held = await hold(tx, tenantKey);
        const holder = upgrade?.login ? await lockKeeper(tx, upgrade.login.email.toLowerCase()) : null;
        const refusal = refusalOfVerification(held, upgrade, isTaken(holder, tenantKey));
        if (refusal) throw refusal;
        const file = await openBooksOf(tx, tenantKey, held, ids.accountId);
        const before = held.tenant;
        const change = openVerification(file, ids.token, upgrade, now);
        await writeBooks(file, change, now);
        const verification = required(await openVerificationOf(tx, file.account.key), "The open verification");
        for (const act of by ? actsOfUpgrade(before, change.tenant ?? {}, by) : []) await noteAct(tx, before.id, act);
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

    billingAccountOf: async (tenantKey) => (await accountOf({ run: pool.read }, tenantKey))?.key ?? null,

    books: (accountKey) => readBooks(pool, accountKey),

    preparePage: (verificationKey, charge, now) =>
      writes.submit(async (tx): Promise<Charge | null> => {
        const file = await fileOf(tx, verificationKey);
        const change = file && openPage(file, verificationKey, charge, now);
        if (!change || (await chargeOf(tx, charge.reference))) return null;
        await writeBooks(file, change, now);
        return chargeOf(tx, charge.reference);
      }),

    setPage: (reference, pageUrl, now) =>
      writes.submit(async (tx) => {
        const charge = required(await lockCharge(tx, reference), "The charge");
        await writeCharge(tx, charge, { key: charge.key, pageUrl, reason: null }, now);
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

    async accountsToClose(limit) {
      const rows = await pool.read<{ key: number }>(
        `select key::float8 as key from billing_account where tenant_key is null and (state = 'closing'
           or exists (select 1 from saved_card where account_key = billing_account.key)) order by key limit $1::int`,
        [limit],
      );
      return rows.map(({ key }) => key);
    },

    async dueAccounts(now, limit) {
      const [row] = await pool.read<{ accounts: string | null; nextAt: number | null }>(dueAccountsText, [now, limit]);
      return { accounts: JSON.parse(row?.accounts ?? "[]"), nextAt: row?.nextAt ?? null };
    },

    async postpone(accountKey, version, at) {
      await pool.write("update billing_account set due_at = $3::bigint where key = $1::bigint and version = $2::int", [
        accountKey,
        version,
        at,
      ]);
    },

    async planDays(accountKey) {
      const [row] = await pool.read<{ periods: string | null; days: string | null }>(planDaysText, [accountKey]);
      return { periods: JSON.parse(row?.periods ?? "[]"), invoiced: new Map(JSON.parse(row?.days ?? "[]")) };
    },

    chargeHistory: (accountKey, limit) =>
      pool.db
        .select(chargeColumns)
        .from(t.charge)
        .where(eq(t.charge.accountKey, accountKey))
        .orderBy(desc(t.charge.key))
        .limit(limit),

    async latestPaidUpgrade(accountKey) {
      const { accountKey: account, kind, state, key } = t.charge;
      const [latest] = await pool.db
        .select(chargeColumns)
        .from(t.charge)
        .where(and(eq(account, accountKey), eq(kind, "upgrade"), eq(state, "succeeded")))
        .orderBy(desc(key))
        .limit(1);
      return latest ?? null;
    },
  };
}

/** Each is a single statement, so it shows one moment. */
export const dueAccountsText = `
  select
    (select json_agg(json_build_object('key', key, 'version', version) order by due_at) from (
      select key, version, due_at from billing_account where due_at <= $1::bigint order by due_at limit $2::int) due
    )::text as accounts,
    (select due_at from billing_account where due_at > $1::bigint order by due_at limit 1)::float8 as "nextAt"`;

export const planDaysText = `
  select
    (select json_agg(json_build_object('tier', tier, 'startedAt', started_at, 'endedAt', ended_at) order by key)
      from plan_period where account_key = $1::bigint)::text as periods,
    (select json_agg(json_build_array(day, state)) from invoice_day join invoice on invoice.key = invoice_key
      where invoice_day.account_key = $1::bigint)::text as days`;

async function readBooks(pool: Pool, accountKey: number): Promise<Books> {
  const { period: _, cards, ...books } = await booksRows({ run: pool.read }, accountKey);
  return {
    ...books,
    card: cards.find(({ key }) => key === books.account.cardKey) ?? null,
    cardsToForget: cards.filter(({ forgetAt }) => forgetAt !== null),
    version: books.account.version,
  };
}
