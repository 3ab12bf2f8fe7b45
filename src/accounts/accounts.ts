import type { UpgradeResult } from "../billing/upgrade.ts";
import { createHeaderVault } from "../delivery/own-headers.ts";
import { type Act, byAccount, type Origin } from "../domain/audit.ts";
import type { NewLogin } from "../domain/books.ts";
import { DomainError, invalidField, isUnavailable, notFound, rateLimited } from "../domain/errors.ts";
import type { OwnLimits } from "../domain/limits.ts";
import { plans } from "../domain/plans.ts";
import { accountGone, paymentsUnavailable, refusalOfUpgrade } from "../domain/standing.ts";
import type { Tenant, Tier } from "../domain/tenant.ts";
import { clientKey } from "../lib/cidr.ts";
import type { Clock } from "../lib/clock.ts";
import { newTenantId } from "../lib/id.ts";
import type { Log } from "../lib/log.ts";
import type { Vault } from "../lib/vault.ts";
import type { NewVerification } from "../store/billing.ts";
import type { Limit, Limits } from "../store/limits.ts";
import type { Store } from "../store/store.ts";
import { type AccountHub, announceChange } from "../stream/account-change.ts";
import { type CheckedWebhook, checkWebhooks, sealHeaders, type UrlPolicy } from "../webhooks/webhooks.ts";
import { makeApiKey } from "./api-keys.ts";
import { createLoginEmails } from "./login-emails.ts";
import type { CreateTenantRequest, OperatorCreateRequest, UpgradeRequest } from "./model.ts";
import { sandboxName } from "./names.ts";
import { checkPassword, generatePassword, type Passwords } from "./password.ts";
import { makeSigningKey, makeSigningSecret } from "./signing-keys.ts";

export interface AccountDeps {
  store: Store;
  limits: Limits;
  clock: Clock;
  vault: Vault;
  policy: UrlPolicy;
  hub: AccountHub;
  passwords: Passwords;
  /** Null: this server takes no payments. */
  payments: AccountPayments | null;
  /** Its books are to be closed. */
  onDeleted(): void;
  settings: { readonly signup: "open" | "closed"; readonly localMode: boolean; readonly webhookConcurrency: number };
  log: Log;
}

/** The part of payments that accounts use. */
export interface AccountPayments {
  newVerification(tenantId: string): NewVerification;
  paymentUrl(token: string): string;
  upgrade(tenant: Tenant, order: { tier: Tier; login: NewLogin | null; by: Origin }): Promise<UpgradeResult>;
  /** Whether an upgrade to the account's current plan may repeat one whose answer was lost. */
  wasJustUpgraded(tenant: Tenant): Promise<boolean>;
}

/** A new account, with the password that is shown only once. */
export interface CreatedAccount {
  readonly tenant: Tenant;
  readonly password: string;
  /** Set when its card must be verified. */
  readonly paymentUrl: string | null;
}

/** `paymentUrl`: set while the upgrade waits for a card or a confirmation. */
export interface Upgraded {
  readonly tenant: Tenant;
  readonly paymentUrl: string | null;
  readonly message: string;
}

export interface Accounts {
  /** Refuses an address with too many new accounts, before its request is read. @throws rate_limited */
  checkSignUpRate(address: string): Promise<void>;
  /**
   * Creates an account for anyone who asks.
   * @throws invalid; forbidden `signup_closed`; rate_limited `too_many_accounts`; unavailable `payments_unavailable`
   */
  signUp(request: CreateTenantRequest, address: string): Promise<CreatedAccount>;
  /** Creates an account on any tier, effective immediately: the operator vouches for it. @throws invalid */
  createForOperator(request: OperatorCreateRequest, origin: Origin): Promise<CreatedAccount>;
  /**
   * Serialized per account: the same request, repeated while the first one runs, gets the same answer.
   * @throws invalid; rate_limited; payment_required; forbidden; unavailable
   */
  upgrade(tenant: Tenant, request: UpgradeRequest, address: string): Promise<Upgraded>;
  /** Refuses an account that tries too many upgrades: each may charge its card. @throws rate_limited */
  checkUpgradeRate(tenant: Tenant): Promise<void>;
  /** @throws not_found `tenant_not_found` */
  find(tenantId: string): Promise<Tenant>;
  setTier(tenant: Tenant, tier: Tier, origin: Origin): Promise<Tenant>;
  /** Sets the limits that are given; null resets one to what the tier includes. */
  setLimits(tenant: Tenant, limits: Partial<OwnLimits>, act: Act): Promise<Tenant>;
  /** Whether `changeEmail` may give it this address. @throws invalid `email_taken` */
  checkEmail(tenant: Tenant, email: string): Promise<void>;
  /**
   * Gives a paid account another e-mail, which is its login from then on.
   * @throws invalid `email_taken`; rate_limited `too_many_email_changes`
   */
  changeEmail(tenant: Tenant, email: string, origin: Origin): Promise<void>;
  suspend(tenant: Tenant, act: Omit<Act, "action">): Promise<Tenant>;
  resume(tenant: Tenant, origin: Origin): Promise<Tenant>;
  /** Sets a generated password, which it returns, and ends every session. */
  resetPassword(tenant: Tenant, origin: Origin): Promise<string>;
  /**
   * Once it returns, the account no longer answers and nothing is delivered. Its rows are erased in the background.
   * @param origin null when the server itself does it
   */
  remove(tenant: Tenant, origin: Origin | null): Promise<void>;
}

/** `loser`: the account that loses its address to the new one. */
interface CheckedRequest {
  readonly webhooks: readonly CheckedWebhook[];
  readonly loser: Tenant | null;
}

/** Rules, section 4. On a laptop every client has the same address, so this applies in public mode only. */
const newAccounts: Limit = { name: "new accounts", most: 60, windowMs: 60 * 60_000, keys: 20_000 };

/** Each may charge the card, and card networks block a card that is tried too often. */
const upgrades: Limit = { name: "upgrades", most: 10, windowMs: 60_000, keys: 20_000 };

/** Each makes the payment processor create another page. */
const emailChanges: Limit = { name: "e-mail changes", most: 10, windowMs: 60 * 60_000, keys: 20_000 };

export function createAccounts(deps: AccountDeps): Accounts {
  const { store, limits, clock, vault, policy, hub, passwords, payments, onDeleted, settings, log } = deps;
  /** Upgrades in progress, by account. */
  const upgradesUnderWay = new Map<number, { asked: string; result: Promise<Upgraded> }>();

  const headerVault = createHeaderVault(vault);
  const loginEmails = createLoginEmails({ store, clock, log });

  /** Validates the whole request by itself, before anything is stored. */
  async function check(request: OperatorCreateRequest): Promise<readonly CheckedWebhook[]> {
    const { tier, name, email, password, webhooks } = request;
    if (tier !== "free") {
      if (name === undefined) throw requiredOnPaidTiers("name");
      if (email === undefined) throw requiredOnPaidTiers("email");
    }
    if (password !== undefined) checkPassword(password);
    return checkWebhooks(webhooks, {
      ...{ policy, field: "webhooks", limit: plans[tier].webhooks },
      webhookConcurrency: settings.webhookConcurrency,
    });
  }

  /** The account that loses its address to a new one. @throws invalid `email_taken` */
  async function loserTo(
    { tier, email }: OperatorCreateRequest,
    count: () => Promise<void> = async () => {},
  ): Promise<Tenant | null> {
    return tier !== "free" && email !== undefined ? loginEmails.refuseTaken(email, count) : null;
  }

  /** @param origin `isVerifiedFirst`: the tier is in force only after a card was verified */
  async function create(
    request: OperatorCreateRequest,
    { webhooks, loser }: CheckedRequest,
    { origin, isVerifiedFirst = false }: { origin: Origin; isVerifiedFirst?: boolean },
  ): Promise<CreatedAccount> {
    const { tier } = request;
    const id = newTenantId();
    const verification = isVerifiedFirst ? payments?.newVerification(id) : undefined;
    const email = request.email ?? `sandbox+${id}@postrider.invalid`;
    const password = request.password ?? generatePassword();
    const tenant = await store.createTenant(
      {
        id,
        name: request.name ?? sandboxName(),
        email,
        loginEmail: tier === "free" ? null : email.toLowerCase(),
        tier,
        enforcedTier: verification ? null : tier,
        passwordHash: await passwords.hash(
          password,
          origin.actor === "account" && origin.address !== null ? { address: origin.address } : {},
        ),
        apiKey: makeApiKey(vault, id),
        signingKey: makeSigningKey(vault, id),
        sealedSigningSecret: makeSigningSecret(vault, id),
        webhooks: sealHeaders(webhooks, { headerVault, tenantId: id, field: "webhooks", stored: [] }),
        ...(verification && { verification }),
      },
      clock.now(),
      { ...origin, action: "account.created", detail: { tier } },
    );
    loginEmails.noteLoss(loser);
    log.write("info", "account.created", { tenant: id, tier });
    return { tenant, password, paymentUrl: verification && payments ? payments.paymentUrl(verification.token) : null };
  }

  /** Asks through `peek` or `take`. */
  async function refuseTooManyAccounts(ask: Limits["peek"], address: string): Promise<void> {
    if (settings.localMode) return;
    const turn = await ask([{ limit: newAccounts, key: clientKey(address) }]);
    if (!turn.ok) throw tooManyAccounts(turn.retryAfterSeconds);
  }

  async function refuseTooManyUpgrades(ask: Limits["peek"], { id }: Tenant): Promise<void> {
    const turn = await ask([{ limit: upgrades, key: id }]);
    if (!turn.ok) throw tooManyUpgrades(turn.retryAfterSeconds);
  }

  /** The same address in another case is still the account's own; the store decides whether it is a login. */
  async function refuseTakenEmail(tenant: Tenant, email: string): Promise<Tenant | null> {
    const isOther = email.toLowerCase() !== tenant.email.toLowerCase();
    return isOther ? loginEmails.refuseTaken(email, () => countEmailChange(tenant)) : null;
  }

  async function countEmailChange({ id }: Tenant): Promise<void> {
    const turn = await limits.take([{ limit: emailChanges, key: id }]);
    if (!turn.ok) throw tooManyEmailChanges(turn.retryAfterSeconds);
  }

  function announceStanding(tenant: Tenant, event: string): Tenant {
    log.write("info", event, { tenant: tenant.id });
    announceChange(hub, tenant, "standing");
    return tenant;
  }

  /** Reads the account afresh: another upgrade may have come first. */
  async function upgradeNow(
    tenantId: string,
    { tier, email, password }: UpgradeRequest,
    address: string,
  ): Promise<Upgraded> {
    const tenant = await store.findTenant(tenantId);
    if (tenant === null) throw accountGone();
    // Checked even when not needed: a client that sends a password believes that it was set.
    if (password !== undefined) checkPassword(password);
    let credentials: { email: string; password: string } | null = null;
    let loser: Tenant | null = null;
    const refusal = refusalOfUpgrade(tenant, tier);
    if (refusal?.kind === "invalid") {
      if (tier === tenant.tier && (await payments?.wasJustUpgraded(tenant))) return paidUpgrade(tenant);
      throw refusal;
    }
    if (tenant.tier === "free") {
      if (email === undefined) throw requiredFromFree("email");
      if (password === undefined) throw requiredFromFree("password");
      loser = await loginEmails.refuseTaken(email, () => refuseTooManyUpgrades(limits.take, tenant));
      credentials = { email, password };
    }
    if (refusal) throw refusal;
    if (!payments) throw paymentsUnavailable();
    // Counted now: concurrent requests all passed the first check before their bodies were read.
    await refuseTooManyUpgrades(limits.take, tenant);
    const login = credentials && {
      email: credentials.email,
      passwordHash: await passwords.hash(credentials.password, { account: tenant.id, address }),
    };
    const result = await payments.upgrade(tenant, { tier, login, by: byAccount(address) });
    // The answer may be that of an earlier request, which brought the address that it asked for.
    if (result.tenant.email.toLowerCase() === email?.toLowerCase()) loginEmails.noteLoss(loser);
    log.write("info", "account.upgraded", { tenant: tenant.id, tier, payment: result.kind });
    announceChange(hub, result.tenant, "tier");
    if (result.kind === "paid") return paidUpgrade(result.tenant);
    const message = result.confirm
      ? "Your bank asks you to confirm the charge; open payment_url to confirm it and complete the upgrade."
      : "Verify a card to activate your plan: open payment_url. The verification charges 100 NGN once.";
    return { tenant: result.tenant, paymentUrl: payments.paymentUrl(result.token), message };
  }

  return {
    checkSignUpRate: (address) => refuseTooManyAccounts(limits.peek, address),

    async signUp(request, address) {
      if (request.tier !== "free" && request.password === undefined) throw requiredOnPaidTiers("password");
      const webhooks = await check(request);
      // Before the store is asked: a server that is closed to strangers does not tell them who has an account.
      if (settings.signup === "closed") throw signUpClosed();
      const loser = await loserTo(request, () => refuseTooManyAccounts(limits.take, address));
      if (request.tier !== "free" && !payments) throw paymentsUnavailable();
      // Counted now: concurrent requests all passed the first check before their bodies were read.
      await refuseTooManyAccounts(limits.take, address);
      const checked = { webhooks, loser };
      return create(request, checked, { origin: byAccount(address), isVerifiedFirst: request.tier !== "free" });
    },

    async createForOperator(request, origin) {
      const webhooks = await check(request);
      return create(request, { webhooks, loser: await loserTo(request) }, { origin });
    },

    async upgrade(tenant, request, address) {
      const asked = JSON.stringify([request.tier, request.email, request.password]);
      const running = upgradesUnderWay.get(tenant.key);
      if (running?.asked === asked) return running.result;
      const result = (running?.result ?? Promise.resolve())
        .catch(() => {})
        .then(() => upgradeNow(tenant.id, request, address));
      const entry = { asked, result };
      upgradesUnderWay.set(tenant.key, entry);
      try {
        return await result;
      } finally {
        if (upgradesUnderWay.get(tenant.key) === entry) upgradesUnderWay.delete(tenant.key);
      }
    },

    checkUpgradeRate: (tenant) => refuseTooManyUpgrades(limits.peek, tenant),

    async find(tenantId) {
      const tenant = await store.findTenant(tenantId);
      if (tenant === null) throw notFound("The tenant does not exist.", "tenant_not_found");
      return tenant;
    },

    async setTier(tenant, tier, origin) {
      const act = { ...origin, action: "tier.set", detail: { tier } } as const;
      const changed = await store.setTier(tenant.key, tier, act);
      log.write("info", "account.tier_set", { tenant: tenant.id, tier });
      announceChange(hub, changed, "tier");
      return changed;
    },

    async setLimits(tenant, limits, act) {
      const changed = await store.setLimits(tenant.key, limits, act);
      log.write("info", "account.limits_set", { tenant: tenant.id, ...limits });
      announceChange(hub, changed, "limits");
      return changed;
    },

    checkEmail: async (tenant, email) => void (await refuseTakenEmail(tenant, email)),

    async changeEmail(tenant, email, origin) {
      const loser = await refuseTakenEmail(tenant, email);
      await countEmailChange(tenant);
      const act = { ...origin, action: "email.changed" } as const;
      const changed = await store.changeEmail(tenant.key, email, act);
      loginEmails.noteLoss(loser);
      announceStanding(changed, "account.email_changed");
    },

    async suspend(tenant, act) {
      const noted = { ...act, action: "account.suspended" } as const;
      return announceStanding(await store.suspend(tenant.key, "operator", clock.now(), noted), "account.suspended");
    },

    async resume(tenant, origin) {
      const act = { ...origin, action: "account.resumed" } as const;
      return announceStanding(await store.resume(tenant.key, "operator", act), "account.resumed");
    },

    async resetPassword(tenant, origin) {
      const password = generatePassword();
      const act = { ...origin, action: "password.reset" } as const;
      await store.setPassword(tenant.key, await passwords.hash(password, {}), act);
      log.write("info", "account.password_reset", { tenant: tenant.id });
      return password;
    },

    async remove(tenant, origin) {
      const act = origin && ({ ...origin, action: "account.deleted" } as const);
      await store.deleteTenant(tenant.key, clock.now(), act ?? undefined).catch((error: unknown) => {
        // Deleting is how room is made, so it must not depend on room for its entry in the audit.
        if (act === null || !isUnavailable(error) || error.code !== "storage_full") throw error;
        log.write("error", "audit.not_noted", { action: act.action, by: act.via, error: error.message });
        return store.deleteTenant(tenant.key, clock.now());
      });
      onDeleted();
      log.write("info", "account.deleted", { tenant: tenant.id });
    },
  };
}

const requiredOnPaidTiers = (field: string) => invalidField(field, "is required on paid tiers", "field_required");

const paidUpgrade = (tenant: Tenant): Upgraded => ({
  tenant,
  paymentUrl: null,
  message: "The upgrade is complete and paid.",
});

const requiredFromFree = (field: string) =>
  invalidField(field, "is required when upgrading from the free tier", "field_required");

export const signUpClosed = () =>
  new DomainError({
    kind: "forbidden",
    code: "signup_closed",
    message: "Sign-up is closed on this server; ask its operator for an account.",
  });

export const tooManyAccounts = (retryAfterSeconds: number) =>
  rateLimited(
    `At most ${newAccounts.most} accounts an hour can be created from one address; retry after the number of seconds in Retry-After.`,
    "too_many_accounts",
    retryAfterSeconds,
  );

const tooManyEmailChanges = (retryAfterSeconds: number) =>
  rateLimited(
    `An account may change its e-mail address at most ${emailChanges.most} times an hour; retry after the number of seconds in Retry-After.`,
    "too_many_email_changes",
    retryAfterSeconds,
  );

export const tooManyUpgrades = (retryAfterSeconds: number) =>
  rateLimited(
    `An account may attempt at most ${upgrades.most} upgrades a minute; retry after the number of seconds in Retry-After.`,
    "too_many_upgrades",
    retryAfterSeconds,
  );
