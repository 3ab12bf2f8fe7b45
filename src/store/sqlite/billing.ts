import { and, eq, isNull, sql } from "drizzle-orm";
import type { CardVerification, Charge, PlanPeriod, SavedCard } from "../../domain/books.ts";
import { accountGone, emailTaken } from "../../domain/standing.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { BillingVerbs, Books, DueAccount } from "../billing.ts";
import { type AccountRow, chargeColumns } from "./billing-rows.ts";
import type { Connection } from "./connection.ts";
import { refuse } from "./lane.ts";
import * as t from "./schema.ts";
import { tenantColumns } from "./tenant-page.ts";
import { changeTenant, isEmailFree, returnToPlanInForce } from "./tenants.ts";

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
  | "rest"
  | "planDays"
  | "chargeHistory"
>;

type CardRow = Omit<SavedCard, "refused"> & { refused: number };

const cardColumns = `key, processor, sealed, signature, brand, last4, exp_month as expMonth, exp_year as expYear, refused,
  forget_at as forgetAt`;

/** Verifications, their pages, and what the biller reads to know what there is to do. */
export function billingVerbs({ client, db, lane, pages, billing }: Connection): Verbs {
  const tenantByKey = db
    .select(tenantColumns)
    .from(t.tenant)
    .where(and(eq(t.tenant.key, sql.placeholder("key")), isNull(t.tenant.deletedAt)))
    .prepare();
  // A bare `?1` beside ORDER BY makes SQLite 3.54 compile the statement anew each time it is bound, which takes longer than
  // to run it (15 µs against 1); `+?1` does not.
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
  const periodsOf = client.prepare<PlanPeriod, [number]>(
    `select tier, started_at as startedAt, ended_at as endedAt from plan_period where account_key = +?1 order by key`,
  );
  const invoicedDays = client.prepare<{ day: number; state: "open" | "paid" }, [number]>(
    `select invoice_day.day, invoice.state from invoice_day join invoice on invoice.key = invoice_day.invoice_key
     where invoice_day.account_key = ?1`,
  );
  const setPageUrl = client.prepare<null, [string, string]>("update charge set page_url = ?2 where reference = ?1");
  const deleteCard = client.prepare<null, [number]>("delete from saved_card where key = ?1");
  const accountOfCard = client.prepare<{ accountKey: number }, [number]>(
    "select account_key as accountKey from saved_card where key = ?1",
  );
  const dropCard = client.prepare<null, [number, number]>(
    "update billing_account set card_key = null where key = ?1 and card_key = ?2",
  );
  const setForgetAt = client.prepare<null, [number, number]>("update saved_card set forget_at = ?2 where key = ?1");
  const due = client.prepare<DueAccount, [number, number]>(
    "select key, version from billing_account where due_at <= ?1 order by due_at limit ?2",
  );
  const nextDue = client.prepare<{ at: number | null }, [number]>(
    "select min(due_at) as at from billing_account where due_at > ?1",
  );
  const setDue = client.prepare<null, [number, number, number | null]>(
    "update billing_account set due_at = ?3 where key = ?1 and version = ?2",
  );

  /** Six reads in one transaction: each by itself would lock the log and look at its end again. */
  const readTogether = client.transaction(readBooks);

  function readBooks(accountKey: number): Books {
    const account = billing.account(accountKey);
    const cards = cardsOf.all(accountKey).map(({ refused, ...card }) => ({ ...card, refused: refused !== 0 }));
    return {
      account,
      tenant: livingTenant(account),
      verification: billing.verificationOf(accountKey),
      card: cards.find(({ key }) => key === account.cardKey) ?? null,
      cardsToForget: cards.filter(({ forgetAt }) => forgetAt !== null),
      charges: unfinishedCharges.all(accountKey),
      invoices: billing.openInvoices(accountKey),
      version: account.version,
    };
  }

  const livingTenant = (account: AccountRow): Tenant | null =>
    account.tenantKey === null ? null : (tenantByKey.get({ key: account.tenantKey }) ?? null);

  return {
    openVerification: (tenantKey, ids, upgrade, now) =>
      lane.submit<{ tenant: Tenant; verification: CardVerification }>((tx) => {
        const page = pages(tx, tenantKey);
        if (page.gone) return refuse(accountGone());
        const login = upgrade?.login;
        if (login && !isEmailFree(db, login.email.toLowerCase(), tenantKey)) return refuse(emailTaken());
        const account = billing.openAccount(tenantKey, ids.accountId);
        const verification = billing.openVerification(account.key, ids.token, now);
        if (upgrade) {
          changeTenant(db, page, {
            tier: upgrade.tier,
            ...(login && {
              email: login.email,
              loginEmail: login.email.toLowerCase(),
              passwordHash: login.passwordHash,
            }),
          });
        }
        billing.touch(account.key, now);
        return { tenant: page.tenant, verification };
      }),

    async findVerification(token) {
      const verification = billing.verificationByToken(token);
      if (!verification) return null;
      const tenant = livingTenant(billing.account(verification.accountKey));
      return tenant && { verification, tenant };
    },

    billingAccountOf: async (tenantKey) => billing.accountOf(tenantKey)?.key ?? null,

    books: async (accountKey) => readTogether(accountKey),

    preparePage: (verificationKey, charge, now) =>
      lane.submit<Charge | null>(() => {
        const verification = billing.verification(verificationKey);
        if (verification?.state !== "open") return null;
        billing.leavePage(verification, now);
        const page = billing.addCharge(verification.accountKey, "verification", charge, null, now);
        billing.setVerificationCharge(verificationKey, page.key);
        billing.touch(verification.accountKey, now);
        return page;
      }),

    setPage: (reference, pageUrl, now) =>
      lane.submit<void>(() => {
        setPageUrl.run(reference, pageUrl);
        billing.touch(billing.requiredCharge(reference).accountKey, now);
      }),

    dropPage: (verificationKey, now) =>
      lane.submit<void>(() => {
        const verification = billing.verification(verificationKey);
        if (verification?.state !== "open") return;
        billing.leavePage(verification, now);
        billing.setVerificationCharge(verificationKey, null);
        billing.touch(verification.accountKey, now);
      }),

    giveUpVerification: (verificationKey, now) =>
      lane.submit<Tenant | null>((tx) => {
        const verification = billing.verification(verificationKey);
        if (verification?.state !== "open") return null;
        const account = billing.account(verification.accountKey);
        billing.closeVerification(account.key, now);
        billing.touch(account.key, now);
        if (account.tenantKey === null) return null;
        const page = pages(tx, account.tenantKey);
        if (page.gone) return null;
        returnToPlanInForce(db, page);
        return page.tenant;
      }),

    cardForgotten: (cardKey, now) =>
      lane.submit<void>(() => {
        const card = accountOfCard.get(cardKey);
        if (!card) return;
        dropCard.run(card.accountKey, cardKey);
        deleteCard.run(cardKey);
        billing.touch(card.accountKey, now);
      }),

    forgetCardLater: (cardKey, at, now) =>
      lane.submit<void>(() => {
        const card = accountOfCard.get(cardKey);
        if (!card) return;
        setForgetAt.run(cardKey, at);
        billing.touch(card.accountKey, now);
      }),

    dueAccounts: async (now, limit) => ({
      accounts: due.all(now, limit),
      nextAt: nextDue.get(now)?.at ?? null,
    }),

    rest: (accountKey, version, at) => lane.submit<void>(() => void setDue.run(accountKey, version, at)),

    planDays: async (accountKey) => ({
      periods: periodsOf.all(accountKey),
      invoiced: new Map(invoicedDays.all(accountKey).map(({ day, state }) => [day, state])),
    }),

    chargeHistory: async (accountKey, limit) => chargesOf.all(accountKey, limit),
  };
}
