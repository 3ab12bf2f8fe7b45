import type { Origin } from "../domain/audit.ts";
import type { Charge, NewLogin } from "../domain/books.ts";
import { DomainError, unavailable } from "../domain/errors.ts";
import { isHigherTier } from "../domain/plans.ts";
import { accountGone, refusalOfUpgrade } from "../domain/standing.ts";
import type { Tenant, Tier } from "../domain/tenant.ts";
import { isPendingUpgrade } from "../domain/verifications.ts";
import type { Clock } from "../lib/clock.ts";
import type { KeyedLock } from "../lib/keyed-lock.ts";
import type { Books } from "../store/billing.ts";
import type { Store } from "../store/store.ts";
import type { BillingCalendar } from "./calendar.ts";
import { type Charging, maySendAgain, newVerification, type Outcome } from "./charging.ts";
import type { EarlierLife } from "./earlier-life.ts";
import { cardCharge, type Invoicing } from "./invoicing.ts";
import { chargeReference, type References } from "./references.ts";
import { repeatedUpgradeMs } from "./terms.ts";

export interface UpgradeOrder {
  readonly tier: Tier;
  /** The login of an account that was free. */
  readonly login: NewLogin | null;
  /** For the audit, which has the upgrade once it takes effect. */
  readonly by: Origin;
}

/** `pending`: a card has to be verified, or the bank wants the customer to confirm; both on the page of `token`. */
export type UpgradeResult =
  | { readonly kind: "paid"; readonly tenant: Tenant }
  | { readonly kind: "pending"; readonly tenant: Tenant; readonly token: string; readonly confirm: boolean };

export interface UpgradeDeps {
  store: Store;
  clock: Pick<Clock, "now">;
  processor: string;
  charging: Charging;
  invoicing: Invoicing;
  calendar: BillingCalendar;
  references: References;
  earlierLife: EarlierLife;
  lock: KeyedLock<number>;
  /** The account has the login that came with an upgrade. */
  announce(tenant: Tenant, changed: "login"): void;
}

const defaultRetrySeconds = 60;

/** A month's end takes several calls to the processor. */
const monthEndSeconds = 5;

/**
 * Upgrades an account (rules, section 12). With a saved card, what the old plan has cost so far is charged immediately;
 * otherwise a card has to be verified first.
 *
 * The next request finds a charge whose answer was lost, under the same reference, so repeating the request after a 503
 * charges nothing twice. The account was found upgradable before its turn came: when another server has carried out the same
 * request in the meantime, both get the same answer.
 *
 * @returns a function that throws payment_required `payment_declined`; unavailable `payment_unknown`,
 * `payments_unavailable`; and what `refusalOfUpgrade` says
 */
export function createUpgrade(deps: UpgradeDeps) {
  const { store, clock, processor, charging, invoicing, calendar, references, earlierLife, lock, announce } = deps;

  return async function upgrade(tenant: Tenant, order: UpgradeOrder): Promise<UpgradeResult> {
    const accountKey = await store.billingAccountOf(tenant.key);
    return accountKey === null ? verifyFirst(tenant, order) : lock.run(accountKey, () => charge(accountKey, order));
  };

  async function charge(accountKey: number, order: UpgradeOrder): Promise<UpgradeResult> {
    const before = await store.books(accountKey);
    const open = openUpgradeOf(before);
    const done = open && (await finish(before, open, order));
    if (done) return done;

    const books = open ? await store.books(accountKey) : before;
    const tenant = livingTenant(books);
    const refusal = refusalOfUpgrade(tenant, order.tier);
    if (refusal && tenant.tier === order.tier && (await wasJustCompleted(store, tenant, clock.now()))) {
      return { kind: "paid", tenant };
    }
    if (isPendingUpgrade(tenant, order)) return pending(books);
    if (refusal) throw refusal;
    const card = books.card?.processor === processor ? books.card : null;
    if (!card || tenant.tier !== tenant.enforcedTier) return verifyFirst(tenant, order);
    if (card.refused) throw declined("the bank declined it permanently");

    const { account } = books;
    const monthEndsAt = account.nextInvoiceAt ?? calendar.nextMonthEnd(clock.now());
    // The month's end comes first: it may find, after a restore, that its days were paid long ago.
    if (monthEndsAt <= clock.now()) throw outcomeUnknown(monthEndSeconds);
    const month = calendar.monthEndedAt(monthEndsAt);
    const invoiceIdOf = (nth: number) => references.invoiceId(account.id, "upgrade", month, nth);
    const number = await earlierLife.numberOf((nth) => chargeReference("upgrade", invoiceIdOf(nth), 1));
    if (number.kind === "unknown") throw outcomeUnknown(Math.ceil((number.retryAfterMs ?? 1000) / 1000));
    const invoice = await invoicing.ofUpgrade(account, invoiceIdOf(number.nth), clock.now());
    const stored = await store.prepareUpgrade(
      accountKey,
      { invoice, charge: cardCharge(invoice, 1, processor, card.key), tier: order.tier, login: order.login },
      clock.now(),
    );
    if (!stored) throw outcomeUnknown(defaultRetrySeconds);
    return answer(accountKey, await charging.send(await store.books(accountKey), stored, order.by), stored);
  }

  /**
   * Settles an earlier upgrade whose outcome was open: its answer, or null when it has ended and this one starts from
   * scratch.
   */
  async function finish(books: Books, open: Charge, order: UpgradeOrder): Promise<UpgradeResult | null> {
    if (open.pageUrl !== null) return null;
    const { by } = order;
    let outcome = await (open.sentAt === null ? charging.send(books, open, by) : charging.settle(books, open, by));
    if (outcome.kind === "not_found" && maySendAgain(open, clock.now())) outcome = await charging.send(books, open, by);
    if (outcome.kind === "not_found") throw outcomeUnknown(secondsUntil(open.resendAt));
    if (outcome.kind === "failed" || outcome.kind === "unacceptable") return null;
    const result = await answer(books.account.key, outcome, open);
    return isHigherTier(order.tier, result.tenant.tier) ? null : result;
  }

  async function answer(accountKey: number, outcome: Outcome, charge: Charge): Promise<UpgradeResult> {
    switch (outcome.kind) {
      case "paid":
        return { kind: "paid", tenant: livingTenant(await store.books(accountKey)) };
      case "confirmation":
        return pending(await store.books(accountKey));
      case "failed":
      case "unacceptable":
        throw declined(outcome.reason);
      case "operator":
        throw unavailable(
          "The payment processor does not accept charges from this server at the moment; nothing was changed.",
          "payments_unavailable",
          defaultRetrySeconds,
        );
      case "not_found":
        throw outcomeUnknown(secondsUntil(charge.resendAt));
      case "waiting":
        throw outcomeUnknown(defaultRetrySeconds);
      case "unknown":
        throw outcomeUnknown(Math.ceil((outcome.retryAfterMs ?? 1000) / 1000));
    }
  }

  async function verifyFirst({ key, id }: Tenant, { tier, login, by }: UpgradeOrder): Promise<UpgradeResult> {
    const { tenant, verification } = await store.openVerification(
      key,
      newVerification(references.accountId(id)),
      { tier, login },
      clock.now(),
      by,
    );
    if (login?.passwordHash === tenant.passwordHash) announce(tenant, "login");
    return { kind: "pending", tenant, token: verification.token, confirm: false };
  }

  function secondsUntil(at: number | null): number {
    return at === null ? defaultRetrySeconds : Math.max(1, Math.ceil((at - clock.now()) / 1000));
  }
}

/**
 * Whether an upgrade has just been completed: by a request whose answer may have been lost, or by the biller after its
 * client was told to repeat it. A repeated request is answered as if it had done it itself.
 */
export async function wasJustCompleted(
  store: Pick<Store, "billingAccountOf" | "latestPaidUpgrade">,
  tenant: Tenant,
  now: number,
): Promise<boolean> {
  const accountKey = tenant.tier === tenant.enforcedTier ? await store.billingAccountOf(tenant.key) : null;
  const paid = accountKey === null ? null : await store.latestPaidUpgrade(accountKey);
  // One with a page was answered with 202 and confirmed there.
  return paid !== null && paid.pageUrl === null && now - (paid.settledAt ?? 0) < repeatedUpgradeMs;
}

/** The answer while an upgrade waits for its customer. */
function pending(books: Books): UpgradeResult {
  if (!books.verification) throw outcomeUnknown(defaultRetrySeconds);
  const confirm = (openUpgradeOf(books)?.pageUrl ?? null) !== null;
  return { kind: "pending", tenant: livingTenant(books), token: books.verification.token, confirm };
}

const openUpgradeOf = ({ charges }: Books): Charge | undefined =>
  charges.find(({ kind, state }) => kind === "upgrade" && state === "open");

function livingTenant({ tenant }: Books): Tenant {
  if (tenant) return tenant;
  throw accountGone();
}

/** Specification, "Accounts": the saved card charge failed. */
const declined = (reason: string) =>
  new DomainError({
    kind: "payment_required",
    code: "payment_declined",
    message: `The saved card could not be charged (${reason}); verify another card with POST /v1/tenants/payment-method and retry the request.`,
  });

const outcomeUnknown = (retryAfterSeconds: number) =>
  unavailable(
    "The payment processor has not confirmed whether the card was charged; retry the request, nothing is charged twice.",
    "payment_unknown",
    retryAfterSeconds,
  );
