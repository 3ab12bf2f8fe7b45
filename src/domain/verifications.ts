import type { CardVerification, Charge, NewCharge, NewLogin } from "./books.ts";
import { type BooksChange, type OpenBooks, withPeriod } from "./books-change.ts";
import { supersede } from "./charges.ts";
import type { DomainError } from "./errors.ts";
import { isHigherTier } from "./plans.ts";
import { accountGone, emailTaken, refusalOfUpgrade } from "./standing.ts";
import type { Tenant, TenantChange, Tier } from "./tenant.ts";
import { toLogin, toPlanInForce } from "./tenant-change.ts";
import type { TenantState } from "./tenant-state.ts";

/** What a card is verified for, apart from itself. */
export interface Upgrade {
  readonly tier: Tier;
  /** The login of an account that was free. */
  readonly login: NewLogin | null;
}

/**
 * Whether this very upgrade is the one that the account waits for: another server has carried out the same request. It has
 * brought its login; of that only the address can be compared.
 */
export const isPendingUpgrade = ({ tier, enforcedTier, email }: Tenant, upgrade: Upgrade): boolean =>
  tier === upgrade.tier &&
  enforcedTier !== tier &&
  (upgrade.login === null || upgrade.login.email.toLowerCase() === email.toLowerCase());

/**
 * Why no card can be verified; null if it can. The account may have changed since an upgrade was found possible: the operator
 * has set its tier, or another server has upgraded it.
 * @param isTaken the address is the login of another account
 */
export function refusalOfVerification(
  { gone, tenant }: Pick<TenantState, "gone" | "tenant">,
  upgrade: Upgrade | null,
  isTaken: boolean,
): DomainError | null {
  if (gone) return accountGone();
  const refusal = upgrade && !isPendingUpgrade(tenant, upgrade) ? refusalOfUpgrade(tenant, upgrade.tier) : null;
  if (refusal) return refusal;
  return isTaken ? emailTaken() : null;
}

/**
 * Opens a verification unless one is open already; an upgrade names its tier immediately. Its login is that of an account that
 * was free: one that has a login by now keeps it.
 */
export function openVerification(
  { verification, tenant }: Pick<OpenBooks, "verification" | "tenant">,
  token: string,
  upgrade: Upgrade | null,
  now: number,
): BooksChange {
  const login = tenant?.tier === "free" ? upgrade?.login : null;
  return {
    ...(!verification && { addsVerification: { token, createdAt: now, chargeKey: null } }),
    ...(upgrade &&
      upgrade.tier !== tenant?.tier && {
        tenant: { tier: upgrade.tier, ...(login && toLogin({ ...login, isTaken: false })) },
      }),
  };
}

/** Points the address of a verification to a new page, replacing the one before. Null if it is no longer open. */
export function openPage(
  books: OpenBooks,
  verificationKey: number,
  charge: NewCharge,
  now: number,
): BooksChange | null {
  const { verification } = books;
  if (verification?.key !== verificationKey) return null;
  return {
    ...leavePage(books, now),
    verification: { key: verificationKey, chargeKey: "added" },
    addsCharge: {
      ...charge,
      kind: "verification",
      state: "open",
      invoiceKey: null,
      createdAt: now,
      // It is paid on the page: no request is sent after the one for the page.
      sentAt: now,
      settledAt: null,
      transactionId: null,
    },
  };
}

/** Whether there is something to pay by card: the plan, or a charge of an earlier plan that is still outstanding. */
export const paysByCard = ({ tier, pastDueAt, paymentSuspendedAt }: Tenant): boolean =>
  tier === "pro" || tier === "business" || pastDueAt !== null || paymentSuspendedAt !== null;

/** A tier that was set and not paid for by card. If nothing else is to be paid by card, there is nothing to verify. */
export function takeTier(books: OpenBooks, tenant: TenantChange, now: number): BooksChange {
  const isToBeVerified = books.tenant !== null && paysByCard({ ...books.tenant, ...tenant });
  return withPeriod(books, { ...(!isToBeVerified && closeVerification(books, now)), tenant }, now);
}

/**
 * Whether a payment leaves nothing to pay by card: the operator has changed the tier while the charge was outstanding. The page
 * would then ask for a card that nobody needs. An address that leads to a bank is still needed.
 * @param tenant as the payment leaves it
 */
export const isNeedless = (books: OpenBooks, { chargeKey }: CardVerification, paid: Charge, tenant: Tenant): boolean =>
  !paysByCard(tenant) && chargeKey !== paid.key && toBeConfirmed(books).every(({ key }) => key === paid.key);

/** Abandons the page, so that the next visitor gets a new one. Null if the verification is no longer open. */
export function dropPage(books: OpenBooks, verificationKey: number, now: number): BooksChange | null {
  if (books.verification?.key !== verificationKey) return null;
  return { ...leavePage(books, now), verification: { key: verificationKey, chargeKey: null } };
}

/** Nobody has completed it: an upgrade goes back to the plan in force. Null if it was not open. */
export function giveUpVerification(books: OpenBooks, verificationKey: number, now: number): BooksChange | null {
  const { verification, tenant } = books;
  if (verification?.key !== verificationKey) return null;
  return { ...closeVerification(books, now), ...(tenant && { tenant: toPlanInForce(tenant) }) };
}

/** Closes the open verification, if there is one; a payment that still comes for its page is refunded. */
export function closeVerification(books: OpenBooks, now: number): BooksChange {
  const { verification } = books;
  if (!verification) return {};
  return { ...leavePage(books, now), verification: { key: verification.key, state: "given_up" } };
}

/** A month-end charge that waits for a confirmation stays: its days are owed in any case. */
function leavePage(books: OpenBooks, now: number): BooksChange {
  const { verification, charges } = books;
  const left = charges.filter(({ key, kind }) => key === verification?.chargeKey && kind !== "subscription");
  return left.length > 0 ? supersede(books, left, now) : {};
}

/** Where the bank wants the customer to confirm a charge. */
export interface Confirmation {
  readonly pageUrl: string;
  readonly lookUpAt: number;
  /** The secret part of a `payment_url`, should there be none. */
  readonly token: string;
}

/**
 * The bank wants the customer to confirm: the account gets a `payment_url` that leads there, and an upgrade takes effect
 * in name only. Null if the charge is no longer open.
 *
 * An upgrade's customer is told to confirm it there, so a card page that was opened before is left behind. A month's charge
 * does not take the place of a page on which the customer may be giving another card: that one pays it too. Neither takes
 * the place of another bank's page; its turn comes after that one.
 */
export function confirmCharge(
  books: OpenBooks,
  charge: Charge,
  { pageUrl, lookUpAt, token }: Confirmation,
  now: number,
): BooksChange | null {
  if (charge.state !== "open") return null;
  const asked = { key: charge.key, pageUrl, lookUpAt };
  const { tenant, verification } = books;
  const invoice = books.invoices.find(({ key }) => key === charge.invoiceKey);
  if (!tenant || !invoice) return { charges: [asked] };
  const { key, targetTier: tier, login } = invoice;
  const leadsTo = books.charges.find((open) => open.key === verification?.chargeKey);
  const isOverCardPage = tier !== null && leadsTo?.kind === "verification";
  const left = isOverCardPage ? leavePage(books, now) : {};
  return {
    ...left,
    charges: [asked, ...(left.charges ?? [])],
    ...(verification &&
      (isOverCardPage || verification.chargeKey === null) && {
        verification: { key: verification.key, chargeKey: charge.key },
      }),
    ...(!verification && { addsVerification: { token, createdAt: now, chargeKey: charge.key } }),
    ...(tier !== null && {
      tenant: { ...(isHigherTier(tier, tenant.tier) && { tier }), ...toLogin(login) },
      invoices: [{ key, login: null }, ...(left.invoices ?? [])],
    }),
  };
}

/** Charges that a bank wants to have confirmed. */
export const toBeConfirmed = ({ charges }: OpenBooks): Charge[] =>
  charges.filter(({ kind, pageUrl }) => (kind === "upgrade" || kind === "subscription") && pageUrl !== null);

/**
 * The charge that the address of a verification led to is over: it now leads to the next one that needs a confirmation.
 * @param end what becomes of the verification if there is none; null: it stays open, and leads nowhere for now
 */
export function leadOn(
  books: OpenBooks,
  { key, chargeKey }: CardVerification,
  over: Charge,
  end: "succeeded" | "given_up" | null,
): Pick<BooksChange, "verification"> {
  if (chargeKey !== over.key) return {};
  const next = toBeConfirmed(books).find((charge) => charge.key !== over.key);
  return { verification: { key, chargeKey: next?.key ?? null, ...(!next && end && { state: end }) } };
}
