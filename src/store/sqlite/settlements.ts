import type { CardVerification, Charge, NewCard } from "../../domain/books.ts";
import { isHigherTier } from "../../domain/plans.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { BillingVerbs, PaymentSettled } from "../billing.ts";
import type { AccountRow, InvoiceRow } from "./billing-rows.ts";
import { isSettled, openChargeOfInvoiceSql } from "./charges.ts";
import type { Connection } from "./connection.ts";
import type { LaneTransaction } from "./lane.ts";
import type { TenantPage } from "./tenant-page.ts";
import { changeTenant, isEmailFree, returnToPlanInForce } from "./tenants.ts";

type Verbs = Pick<BillingVerbs, "settleVerification" | "settleCharge" | "failCharge" | "awaitConfirmation">;

/**
 * What became of charges, and what follows from it for card, plan and standing. Each verb compares with the state that it
 * finds, so that of two reports about one payment exactly one counts.
 */
export function settlementVerbs({ client, db, lane, pages, billing }: Connection): Verbs {
  const openChargeOfInvoice = client.prepare<{ key: number }, [number]>(openChargeOfInvoiceSql);
  const openConfirmations = client.prepare<{ key: number }, [number]>(
    `select key from charge where account_key = ?1 and state = 'open' and kind in ('upgrade', 'subscription')
       and page_url is not null order by key`,
  );
  const setSucceeded = client.prepare<null, [number, number, string, number | null, number | null]>(
    `update charge set state = 'succeeded', settled_at = ?2, transaction_id = ?3, card_key = coalesce(?4, card_key),
       amount_kobo = coalesce(?5, amount_kobo), look_up_at = null, reason = null where key = ?1`,
  );
  const lowerInvoice = client.prepare<null, [number, number, number]>(
    "update invoice set total_kobo = ?2, amount_kobo = ?3 where key = ?1",
  );
  const setFailed = client.prepare<null, [number, number, string, number | null]>(
    "update charge set state = 'failed', settled_at = ?2, reason = ?3, look_up_at = ?4 where key = ?1",
  );
  const setConfirmation = client.prepare<null, [number, string, number]>(
    "update charge set page_url = ?2, look_up_at = ?3 where key = ?1",
  );
  const setPaid = client.prepare<null, [number, number]>(
    `update invoice set state = 'paid', paid_at = ?2, next_attempt_at = null, new_email = null, new_password_hash = null
     where key = ?1`,
  );
  const setDunning = client.prepare<null, [number, number, number | null]>(
    "update invoice set first_failed_at = coalesce(first_failed_at, ?2), next_attempt_at = ?3 where key = ?1",
  );
  const chargeAgainNow = client.prepare<null, [number, number]>(
    "update invoice set next_attempt_at = ?2 where account_key = ?1 and state = 'open' and kind = 'subscription'",
  );
  const forgetLogin = client.prepare<null, [number]>(
    "update invoice set new_email = null, new_password_hash = null where key = ?1",
  );
  const verifyAccount = client.prepare<null, [number, number, number, number]>(
    `update billing_account set card_key = ?2, verified_at = coalesce(verified_at, ?3),
       next_invoice_at = coalesce(next_invoice_at, ?4) where key = ?1`,
  );
  const cardSignature = client.prepare<{ processor: string; signature: string | null }, [number]>(
    "select processor, signature from saved_card where key = ?1",
  );
  const replaceToken = client.prepare<null, [number, Uint8Array, string, string]>(
    "update saved_card set sealed = ?2, exp_month = ?3, exp_year = ?4, refused = 0 where key = ?1",
  );
  const forgetCard = client.prepare<null, [number, number]>("update saved_card set forget_at = ?2 where key = ?1");
  const refuseCard = client.prepare<null, [number]>("update saved_card set refused = 1 where key = ?1");

  /** The tenant's page in this transaction; null when it has been deleted. */
  function pageOf(tx: LaneTransaction, account: AccountRow): TenantPage | null {
    if (account.tenantKey === null) return null;
    const page = pages(tx, account.tenantKey);
    return page.gone ? null : page;
  }

  /** Puts a verified card in use. The same card keeps its row and takes the newer token. */
  function saveCard(account: AccountRow, card: NewCard, now: number): number {
    const current = account.cardKey === null ? null : cardSignature.get(account.cardKey);
    const isSame =
      current !== null &&
      current.signature !== null &&
      current.signature === card.signature &&
      current.processor === card.processor;
    if (account.cardKey !== null && isSame) {
      replaceToken.run(account.cardKey, card.sealed, card.expMonth, card.expYear);
      return account.cardKey;
    }
    if (account.cardKey !== null) forgetCard.run(account.cardKey, now);
    return billing.addCard(account.key, card, null, now);
  }

  /** A payment that nobody waits for goes back, and its card is not kept. */
  function giveBack(charge: Charge, transactionId: string | null, card: NewCard | null, now: number): void {
    billing.refund(charge.key, now, transactionId);
    if (card) billing.addCard(charge.accountKey, card, now, now);
    billing.touch(charge.accountKey, now);
  }

  /** What an upgrade changes besides the tier. An address that somebody has taken meanwhile stays a contact only. */
  function loginOf(invoice: InvoiceRow, page: TenantPage) {
    const { newEmail, newPasswordHash } = invoice;
    if (newEmail === null || newPasswordHash === null) return {};
    const loginEmail = newEmail.toLowerCase();
    const isFree = isEmailFree(db, loginEmail, page.tenant.key);
    return { email: newEmail, loginEmail: isFree ? loginEmail : null, passwordHash: newPasswordHash };
  }

  /** A charge that was found again may be over another amount than the invoice; it pays its days and is never added to. */
  function balance({ key, accountKey, totalKobo, creditUsedKobo }: InvoiceRow, amountKobo: number): void {
    const paidKobo = amountKobo + creditUsedKobo;
    if (paidKobo < totalKobo) lowerInvoice.run(key, paidKobo, amountKobo);
    else billing.addCredit(accountKey, paidKobo - totalKobo);
  }

  /** @param wasConfirmed the customer had to confirm it; meanwhile a later upgrade may have raised the target */
  function applyUpgrade(invoice: InvoiceRow, page: TenantPage | null, wasConfirmed: boolean): void {
    if (!page || invoice.targetTier === null) return;
    const { tier, enforcedTier } = page.tenant;
    const target = wasConfirmed && isHigherTier(tier, invoice.targetTier) ? tier : invoice.targetTier;
    changeTenant(db, page, {
      ...(isHigherTier(target, tier) && { tier: target }),
      ...(isHigherTier(target, enforcedTier ?? "free") && { enforcedTier: target }),
      ...loginOf(invoice, page),
    });
  }

  /** The outstanding charge has succeeded: what it had brought upon the account ends, unless another one is outstanding. */
  function restoreStanding(account: AccountRow, page: TenantPage | null): void {
    if (!page || (page.tenant.pastDueAt === null && page.tenant.paymentSuspendedAt === null)) return;
    if (billing.openInvoices(account.key).some(({ firstFailedAt }) => firstFailedAt !== null)) return;
    changeTenant(db, page, { pastDueAt: null, paymentSuspendedAt: null });
  }

  /** The charge that the address of a verification led to is over: it leads to the next one that is to be confirmed. */
  function leadOn(verification: CardVerification): boolean {
    const next = openConfirmations.get(verification.accountKey);
    billing.setVerificationCharge(verification.key, next?.key ?? null);
    return next !== null;
  }

  const settledAs = (kind: PaymentSettled["kind"], { key }: Charge, page: TenantPage | null): PaymentSettled => ({
    kind,
    charge: billing.charge(key),
    tenant: page?.tenant ?? null,
  });

  return {
    settleVerification: (reference, card, { transactionId }, nextInvoiceAt, now) =>
      lane.submit<PaymentSettled>((tx) => {
        const charge = billing.requiredCharge(reference);
        const account = billing.account(charge.accountKey);
        const page = pageOf(tx, account);
        const outcome = (kind: PaymentSettled["kind"]) => settledAs(kind, charge, page);
        if (isSettled(charge)) return outcome("known");
        const verification = billing.verificationByCharge(account.key, charge.key);
        if (charge.state !== "open" || !verification || !page) {
          giveBack(charge, transactionId, card, now);
          return outcome("refund_due");
        }
        const cardKey = saveCard(account, card, now);
        setSucceeded.run(charge.key, now, transactionId, cardKey, null);
        // 100 NGN once: only the first verification of an account is kept (decisions, section 12).
        if (account.verifiedAt !== null) billing.refund(charge.key, now, null);
        billing.endVerification(verification.key, "succeeded");
        verifyAccount.run(account.key, cardKey, now, nextInvoiceAt);
        const { tier, enforcedTier } = page.tenant;
        if (enforcedTier === null || isHigherTier(tier, enforcedTier)) changeTenant(db, page, { enforcedTier: tier });
        for (const { key } of openConfirmations.all(account.key)) billing.supersede(billing.charge(key), now);
        chargeAgainNow.run(account.key, now);
        billing.recordPlan(billing.account(account.key), page.tenant, now);
        billing.touch(account.key, now);
        return outcome("applied");
      }),

    settleCharge: (reference, { transactionId, amountKobo }, now) =>
      lane.submit<PaymentSettled>((tx) => {
        const charge = billing.requiredCharge(reference);
        const account = billing.account(charge.accountKey);
        const page = pageOf(tx, account);
        const outcome = (kind: PaymentSettled["kind"]) => settledAs(kind, charge, page);
        if (isSettled(charge)) return outcome("known");
        const invoice = charge.invoiceKey === null ? null : billing.invoice(charge.invoiceKey);
        // A month's charge that was given up too early still pays its days, as long as nothing else does.
        const paysAfterAll =
          charge.state === "failed" &&
          charge.kind === "subscription" &&
          !openChargeOfInvoice.get(charge.invoiceKey ?? 0);
        if (invoice?.state !== "open" || !(charge.state === "open" || paysAfterAll)) {
          giveBack(charge, transactionId, null, now);
          return outcome("refund_due");
        }
        setSucceeded.run(charge.key, now, transactionId, null, amountKobo ?? null);
        balance(invoice, amountKobo ?? charge.amountKobo);
        setPaid.run(invoice.key, now);
        const verification = billing.verificationByCharge(account.key, charge.key);
        if (charge.kind === "upgrade") applyUpgrade(invoice, page, verification !== null);
        else restoreStanding(account, page);
        const isWaiting = page !== null && page.tenant.tier !== page.tenant.enforcedTier;
        if (verification && !leadOn(verification) && !isWaiting) billing.endVerification(verification.key, "succeeded");
        if (page) billing.recordPlan(account, page.tenant, now);
        billing.touch(account.key, now);
        return outcome("applied");
      }),

    failCharge: (reference, failure, after, now) =>
      lane.submit<Tenant | null>((tx) => {
        const charge = billing.requiredCharge(reference);
        const account = billing.account(charge.accountKey);
        const page = pageOf(tx, account);
        if (charge.state !== "open") {
          if (failure.refund && !isSettled(charge)) giveBack(charge, null, failure.card, now);
          return page?.tenant ?? null;
        }
        setFailed.run(charge.key, now, failure.reason, failure.lookUpAt);
        if (failure.refund) giveBack(charge, null, failure.card, now);
        if (failure.cardRefused && charge.cardKey !== null) refuseCard.run(charge.cardKey);
        const verification = billing.verificationByCharge(account.key, charge.key);
        const isAtEnd = verification !== null && !leadOn(verification);
        if (charge.kind === "upgrade" && charge.pageUrl !== null) {
          // It took effect as the bank asked, and ends as the bank refuses.
          if (isAtEnd) billing.endVerification(verification.key, "given_up");
          if (page) returnToPlanInForce(db, page);
        }
        if (charge.invoiceKey !== null && after) {
          if (after.kind === "void") billing.voidInvoice(account.key, charge.invoiceKey);
          else setDunning.run(charge.invoiceKey, now, after.kind === "retry" ? after.at : null);
          if (page && after.kind !== "void") {
            changeTenant(db, page, {
              pastDueAt: page.tenant.pastDueAt ?? now,
              ...(after.kind === "suspend" && { paymentSuspendedAt: page.tenant.paymentSuspendedAt ?? now }),
            });
            billing.recordPlan(account, page.tenant, now);
          }
        }
        billing.touch(account.key, now);
        return page?.tenant ?? null;
      }),

    awaitConfirmation: (reference, pageUrl, ids, lookUpAt, now) =>
      lane.submit<CardVerification | null>((tx) => {
        const charge = billing.requiredCharge(reference);
        if (charge.state !== "open") return null;
        setConfirmation.run(charge.key, pageUrl, lookUpAt);
        const account = billing.account(charge.accountKey);
        billing.touch(account.key, now);
        const page = pageOf(tx, account);
        if (!page || charge.invoiceKey === null) return null;
        const verification = billing.openVerification(account.key, ids.token, now);
        // A page on which the customer is already giving another card is the better one.
        if (verification.chargeKey === null) billing.setVerificationCharge(verification.key, charge.key);
        const invoice = billing.invoice(charge.invoiceKey);
        if (invoice.targetTier !== null) {
          const { targetTier } = invoice;
          changeTenant(db, page, {
            ...(isHigherTier(targetTier, page.tenant.tier) && { tier: targetTier }),
            ...loginOf(invoice, page),
          });
          forgetLogin.run(invoice.key);
        }
        return billing.verification(verification.key);
      }),
  };
}
