import type { Origin } from "../domain/audit.ts";
import type { Charge } from "../domain/books.ts";
import { chargesPaused } from "../domain/standing.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { KeyedLock } from "../lib/keyed-lock.ts";
import { createLimiter } from "../lib/limiter.ts";
import type { Log } from "../lib/log.ts";
import type { Vault } from "../lib/vault.ts";
import type { NewVerification } from "../store/billing.ts";
import type { Jobs } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { type Biller, createBiller } from "./biller.ts";
import type { BillingCalendar } from "./calendar.ts";
import { createCardVault } from "./card-vault.ts";
import { type ChargingDeps, createCharging, newVerification, processorId } from "./charging.ts";
import { createEarlierLife } from "./earlier-life.ts";
import { createInvoicing, type Invoicing } from "./invoicing.ts";
import { watchLookUps } from "./look-up-watch.ts";
import { createPayPage, type PayPage } from "./pay-page.ts";
import type { PaymentProcessor } from "./processor.ts";
import { createReferences } from "./references.ts";
import { pollPauseMs, visitorLookUpsPerMinute } from "./terms.ts";
import { createUpgrade, type UpgradeOrder, type UpgradeResult, wasJustCompleted } from "./upgrade.ts";
import type { Prices } from "./usage.ts";

export interface PaymentDeps {
  store: Store;
  clock: Clock;
  log: Log;
  vault: Vault;
  processor: PaymentProcessor;
  calendar: BillingCalendar;
  prices: Prices;
  jobs: Jobs;
  /** Serializes requests and the biller for each account. */
  lock: KeyedLock<number>;
  /** References are derived with it, so it stays the same for the life of the database (see `references.ts`). */
  referenceSecret: Uint8Array;
  /** Nothing is charged, and nobody is asked for money (`POSTRIDER_PAUSED`). */
  isPaused(): boolean;
  /** `{base_url}`; known once the server listens. */
  baseUrl(): string;
  announce(tenant: Tenant, changed?: "login"): void;
  onFailed?: ChargingDeps["onFailed"];
  removeTenant(tenant: Tenant): Promise<void>;
  /** For metrics: called after every look-up with an inconclusive answer. */
  onUnknownLookUp(): void;
  /** @throws invalid `email_taken` */
  checkEmail(tenant: Tenant, email: string): Promise<void>;
  /** @throws invalid `email_taken`; rate_limited */
  changeEmail(tenant: Tenant, email: string, origin: Origin): Promise<void>;
}

/** Payments, as the rest of the program sees them. */
export interface Payments {
  /** Ids for a tenant that has to verify its card. */
  newVerification(tenantId: string): NewVerification;
  paymentUrl(token: string): string;
  /** See `createUpgrade`. */
  upgrade(tenant: Tenant, order: UpgradeOrder): Promise<UpgradeResult>;
  /** Whether an upgrade to the plan that the account already has may repeat one whose answer was lost. */
  wasJustUpgraded(tenant: Tenant): Promise<boolean>;
  /**
   * Opens a verification for another card, or finds the open one. @returns its `payment_url`
   * @param email becomes the account's address first
   * @throws invalid `email_taken`; rate_limited
   */
  requestCard(tenant: Tenant, origin: Origin, email?: string): Promise<string>;
  /** Somebody is waiting for a verification: looks it up, at most once a minute. Does not wait for the answer. */
  poll(tenant: Tenant): void;
  openPage(token: string): Promise<PayPage>;
  /**
   * A browser comes back from the processor and names a reference. Anybody can do that, so it costs at most one look-up a
   * minute, and only if the reference is ours and open; its answer never delays a look-up that the processor itself asked
   * for.
   */
  returned(reference: string): Promise<void>;
  /** The processor names a reference: look it up soon, if it is ours. */
  lookUpSoon(reference: string): Promise<void>;
  readonly invoicing: Invoicing;
  readonly processor: PaymentProcessor;
  readonly biller: Biller;
}

/** Entries that the limiters remember. */
const maxKeys = 10_000;

export function createPayments(deps: PaymentDeps): Payments {
  const { store, lock, clock, log, calendar, prices, isPaused, baseUrl, announce, removeTenant } = deps;
  const { checkEmail, changeEmail, jobs } = deps;
  const processor = watchLookUps(deps.processor, { clock, log, onUnknown: deps.onUnknownLookUp });
  const cards = createCardVault(deps.vault);
  const returnUrl = () => `${baseUrl()}/pay/return`;
  const cancelUrl = () => `${baseUrl()}/pay/cancelled`;
  const references = createReferences(deps.referenceSecret);
  const earlierLife = createEarlierLife({ store, clock, log, processor, references });
  const invoicing = createInvoicing({ store, calendar, prices });
  const charging = createCharging({
    store,
    clock,
    log,
    processor,
    cards,
    calendar,
    returnUrl,
    announce,
    ...(deps.onFailed && { onFailed: deps.onFailed }),
  });
  const biller = createBiller({
    store,
    clock,
    log,
    processor,
    cards,
    calendar,
    charging,
    invoicing,
    references,
    earlierLife,
    lock,
    offer: () => void jobs.offer("biller"),
    withdraw: () => jobs.withdraw("biller"),
    mayRun: () => jobs.holds("biller"),
    passOn: () => jobs.wake("biller"),
    announce,
    removeTenant,
  });
  jobs.onWake("biller", biller.wake);
  const onceAMinute = { clock, limit: 1, windowMs: pollPauseMs, maxKeys };
  const lookUps = createLimiter(onceAMinute);
  const polls = createLimiter(onceAMinute);
  const openPage = createPayPage({
    store,
    clock,
    log,
    processor,
    charging,
    references,
    lock,
    lookUps,
    returnUrl,
    cancelUrl,
  });
  const upgrade = createUpgrade({
    store,
    clock,
    processor: processorId(processor),
    charging,
    invoicing,
    calendar,
    references,
    earlierLife,
    lock,
    announce,
  });

  const returns = createLimiter(onceAMinute);
  const visitorLookUps = createLimiter({ clock, limit: visitorLookUpsPerMinute, windowMs: 60_000, maxKeys: 1 });
  /** The processor did not answer a visitor's look-up: later visitors wait until then, but nobody else does. */
  let visitorsWaitUntil = 0;

  /** Stores only news: finding nothing new must not put off a look-up that somebody else has asked for. */
  async function lookUpForVisitor({ reference, accountKey, key, kind, state }: Charge): Promise<void> {
    if (isPaused() || state !== "open" || clock.now() < visitorsWaitUntil) return;
    if (!returns.take(reference).ok || !visitorLookUps.take("all").ok) return;
    const found = await processor.lookUp(reference);
    if (found.kind === "unknown") visitorsWaitUntil = clock.now() + (found.retryAfterMs ?? pollPauseMs);
    // On a hosted page the customer can try another card; a charge of a saved card is over.
    const isOpenStill = found.kind === "pending" || (found.kind === "failed" && kind === "verification");
    if (found.kind === "unknown" || found.kind === "not_found" || isOpenStill) return;
    await lock.run(accountKey, async () => {
      const books = await store.books(accountKey);
      const charge = books.charges.find((open) => open.key === key);
      if (charge?.state === "open") await charging.hear(books, charge, found);
    });
    biller.wake();
  }

  /** Looks up the open payment of an account. */
  async function lookUpOpen(tenantKey: number): Promise<void> {
    const accountKey = await store.billingAccountOf(tenantKey);
    if (accountKey === null) return;
    const { charges, verification } = await store.books(accountKey);
    const page = charges.find(({ key }) => key === verification?.chargeKey);
    if (page) await lookUpForVisitor(page);
  }

  return {
    newVerification: (tenantId) => newVerification(references.accountId(tenantId)),
    invoicing,
    processor,
    biller,
    paymentUrl: (token) => `${baseUrl()}/pay/${token}`,
    async upgrade(tenant, order) {
      if (isPaused()) throw chargesPaused();
      try {
        return await upgrade(tenant, order);
      } finally {
        biller.wake();
      }
    },
    wasJustUpgraded: (tenant) => wasJustCompleted(store, tenant, clock.now()),
    async requestCard(tenant, origin, email = tenant.email) {
      const isNewEmail = email !== tenant.email;
      if (isPaused()) {
        // A request that will never succeed is not told to come back later (rules, section 3).
        if (isNewEmail) await checkEmail(tenant, email);
        throw chargesPaused();
      }
      if (isNewEmail) await changeEmail(tenant, email, origin);
      const { verification } = await store.openVerification(
        tenant.key,
        newVerification(references.accountId(tenant.id)),
        null,
        clock.now(),
      );
      await lock.run(verification.accountKey, async () => {
        const { charges } = await store.books(verification.accountKey);
        const current = charges.find(({ key }) => key === verification.chargeKey);
        // The customer wants another card, so a page for confirming the old one would be the wrong one; and a card
        // entered on a page can be charged only with that page's e-mail address.
        if (current && (isNewEmail || current.kind !== "verification"))
          await store.dropPage(verification.key, clock.now());
      });
      biller.wake();
      return `${baseUrl()}/pay/${verification.token}`;
    },
    poll(tenant) {
      if (isPaused() || tenant.enforcedTier === tenant.tier || !polls.take(tenant.id).ok) return;
      lookUpOpen(tenant.key).catch((error: unknown) => {
        log.write("warn", "payment.poll_failed", { error: messageOf(error) });
      });
    },
    openPage: async (token) => (isPaused() ? { kind: "paused" } : openPage(token)),
    async returned(reference) {
      const charge = await store.findCharge(reference);
      if (charge) await lookUpForVisitor(charge);
    },
    async lookUpSoon(reference) {
      charging.hint(reference);
      const accountKey = await store.lookUpSoon(reference, clock.now());
      if (accountKey !== null) biller.hurry(accountKey);
    },
  };
}
