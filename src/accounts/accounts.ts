import type { AddressPolicy } from "../delivery/address.ts";
import type { DeliveryControl } from "../delivery/deliveries.ts";
import type { Tenant, Tier } from "../domain.ts";
import { DomainError, invalid, notFound, rateLimited, unavailable } from "../errors.ts";
import { clientKey } from "../lib/cidr.ts";
import type { Clock } from "../lib/clock.ts";
import { newTenantId } from "../lib/id.ts";
import { createLimiter } from "../lib/limiter.ts";
import type { Log } from "../lib/log.ts";
import type { Vault } from "../lib/vault.ts";
import { isHigherTier, plans } from "../plans.ts";
import { refusalOfWork } from "../standing.ts";
import type { NewWebhook, Store } from "../store/store.ts";
import { checkWebhooks } from "../webhooks/webhooks.ts";
import { type AccountHub, announceChange } from "./announcement.ts";
import { makeApiKey } from "./api-keys.ts";
import type { CreateTenantRequest, OperatorCreateRequest, UpgradeRequest } from "./model.ts";
import { sandboxName } from "./names.ts";
import { checkPassword, generatePassword, type Passwords } from "./password.ts";
import { makeSigningKey, makeSigningSecret } from "./signing-keys.ts";

export interface AccountDeps {
  store: Store;
  clock: Clock;
  vault: Vault;
  policy: AddressPolicy;
  deliveries: DeliveryControl;
  hub: AccountHub;
  signers: { forget(tenantKey: number): void };
  passwords: Passwords;
  settings: { readonly signup: "open" | "closed"; readonly localMode: boolean };
  log: Log;
}

/** The password of a new account, which is shown this once. */
export interface CreatedAccount {
  readonly tenant: Tenant;
  readonly password: string;
}

export interface Accounts {
  /** Refuses an address with too many new accounts, before its request is read. @throws rate_limited */
  checkSignUpRate(address: string): void;
  /**
   * Makes an account for whoever asks.
   * @throws invalid; forbidden `signup_closed`; rate_limited `too_many_accounts`; unavailable `payments_unavailable`
   */
  signUp(request: CreateTenantRequest, address: string): Promise<CreatedAccount>;
  /** Makes an account on any tier, at once in force: the operator vouches for it. @throws invalid */
  createForOperator(request: OperatorCreateRequest): Promise<CreatedAccount>;
  /** @throws invalid; payment_required; forbidden; unavailable `payments_unavailable` */
  upgrade(tenant: Tenant, request: UpgradeRequest): Promise<never>;
  /** @throws invalid `no_paid_plan`; unavailable `payments_unavailable` */
  requestPaymentMethod(tenant: Tenant): never;
  /** @throws not_found `tenant_not_found` */
  find(tenantId: string): Promise<Tenant>;
  setTier(tenant: Tenant, tier: Tier): Promise<Tenant>;
  suspend(tenant: Tenant): Promise<Tenant>;
  resume(tenant: Tenant): Promise<Tenant>;
  /** Sets a generated password, which it returns, and ends every session. */
  resetPassword(tenant: Tenant): Promise<string>;
  /** From the return on, nothing of the account answers and nothing is delivered. Its rows are erased in the background. */
  remove(tenant: Tenant): Promise<void>;
}

/** Decisions, section 4. On a laptop one address is all there is, so it holds in public mode only. */
const newAccountsPerHour = 60;

export function createAccounts(deps: AccountDeps): Accounts {
  const { store, clock, vault, policy, deliveries, hub, signers, passwords, settings, log } = deps;
  const newAccounts = settings.localMode
    ? null
    : createLimiter({ clock, limit: newAccountsPerHour, windowMs: 60 * 60 * 1000, maxKeys: 20_000 });

  async function refuseTakenEmail(email: string): Promise<void> {
    if ((await store.findTenantByLoginEmail(email.toLowerCase())) !== null) throw emailTaken();
  }

  /** The whole request is judged before anything is made of it. */
  async function check(request: OperatorCreateRequest): Promise<NewWebhook[]> {
    const { tier, name, email, password, webhooks } = request;
    if (tier !== "free") {
      if (name === undefined) throw requiredOnPaidTiers("name");
      if (email === undefined) throw requiredOnPaidTiers("email");
    }
    if (password !== undefined) checkPassword(password);
    const checked = checkWebhooks(policy, webhooks, "webhooks", plans[tier].webhooks);
    if (tier !== "free" && email !== undefined) await refuseTakenEmail(email);
    return checked;
  }

  async function create(request: OperatorCreateRequest, webhooks: readonly NewWebhook[]): Promise<CreatedAccount> {
    const { tier } = request;
    const id = newTenantId();
    const email = request.email ?? `sandbox+${id}@postrider.invalid`;
    const password = request.password ?? generatePassword();
    const tenant = await store.createTenant(
      {
        id,
        name: request.name ?? sandboxName(),
        email,
        loginEmail: tier === "free" ? null : email.toLowerCase(),
        tier,
        enforcedTier: tier,
        passwordHash: await passwords.hash(password),
        apiKey: makeApiKey(vault, id),
        signingKey: makeSigningKey(vault, id),
        sealedSigningSecret: makeSigningSecret(vault, id),
        webhooks,
      },
      clock.now(),
    );
    log.write("info", "account.created", { tenant: id, tier });
    return { tenant, password };
  }

  function checkSignUpRate(address: string): void {
    const turn = newAccounts?.peek(clientKey(address));
    if (turn?.ok === false) throw tooManyAccounts(turn.retryAfterSeconds);
  }

  function announceStanding(tenant: Tenant, event: string): Tenant {
    log.write("info", event, { tenant: tenant.id });
    announceChange(hub, tenant, "standing");
    return tenant;
  }

  return {
    checkSignUpRate,

    async signUp(request, address) {
      if (request.tier !== "free" && request.password === undefined) throw requiredOnPaidTiers("password");
      const webhooks = await check(request);
      if (settings.signup === "closed") throw signUpClosed();
      // Once more: requests that came at the same time all passed the check before their bodies were read.
      checkSignUpRate(address);
      if (request.tier !== "free") throw paymentsUnavailable();
      newAccounts?.take(clientKey(address));
      return create(request, webhooks);
    },

    createForOperator: async (request) => create(request, await check(request)),

    async upgrade(tenant, { tier, email, password }) {
      if (!isHigherTier(tier, tenant.tier)) {
        throw invalid(
          `tier must be higher than "${tenant.tier}", which the account has; downgrades are not supported.`,
          "not_an_upgrade",
        );
      }
      if (tenant.tier === "free") {
        if (email === undefined) throw requiredFromFree("email");
        if (password === undefined) throw requiredFromFree("password");
        checkPassword(password);
        await refuseTakenEmail(email);
      }
      const refusal = refusalOfWork(tenant);
      if (refusal) throw refusal;
      if (tenant.pastDueAt !== null) throw chargeOutstanding();
      throw paymentsUnavailable();
    },

    requestPaymentMethod(tenant) {
      if (tenant.tier === "free" || tenant.tier === "enterprise") throw noPaidPlan(tenant.tier);
      throw paymentsUnavailable();
    },

    async find(tenantId) {
      const tenant = await store.findTenant(tenantId);
      if (tenant === null) throw notFound("The tenant does not exist.", "tenant_not_found");
      return tenant;
    },

    async setTier(tenant, tier) {
      const changed = await store.setTier(tenant.key, tier);
      log.write("info", "account.tier_set", { tenant: tenant.id, tier });
      announceChange(hub, changed, "tier");
      return changed;
    },

    async suspend(tenant) {
      const changed = await store.suspend(tenant.key, "operator", clock.now());
      deliveries.pauseTenant(tenant.key);
      return announceStanding(changed, "account.suspended");
    },

    async resume(tenant) {
      const changed = await store.resume(tenant.key, "operator");
      deliveries.resumeTenant(tenant.key);
      return announceStanding(changed, "account.resumed");
    },

    async resetPassword(tenant) {
      const password = generatePassword();
      await store.setPassword(tenant.key, await passwords.hash(password));
      hub.closeTenant(tenant.id);
      log.write("info", "account.password_reset", { tenant: tenant.id });
      return password;
    },

    async remove(tenant) {
      await store.deleteTenant(tenant.key, clock.now());
      deliveries.stopTenant(tenant.key);
      hub.closeTenant(tenant.id);
      signers.forget(tenant.key);
      log.write("info", "account.deleted", { tenant: tenant.id });
    },
  };
}

const emailTaken = () =>
  invalid(
    "email is already the login of another paid account; use another one or log in to that account.",
    "email_taken",
  );

const requiredOnPaidTiers = (field: string) => invalid(`${field} is required on paid tiers.`, "field_required");

const requiredFromFree = (field: string) =>
  invalid(`${field} is required when upgrading from the free tier.`, "field_required");

const signUpClosed = () =>
  new DomainError({
    kind: "forbidden",
    code: "signup_closed",
    message: "Sign-up is closed on this server; ask its operator for an account.",
  });

const tooManyAccounts = (retryAfterSeconds: number) =>
  rateLimited(
    `At most ${newAccountsPerHour} accounts an hour are made for one address; wait for the seconds in Retry-After.`,
    "too_many_accounts",
    retryAfterSeconds,
  );

const chargeOutstanding = () =>
  new DomainError({
    kind: "payment_required",
    code: "charge_outstanding",
    message: "A charge of the account is outstanding; verify a card with POST /v1/tenants/payment-method first.",
  });

const noPaidPlan = (tier: Tier) =>
  invalid(
    tier === "free"
      ? "A free account has nothing to pay; POST /v1/tenants/upgrade changes the plan."
      : "An enterprise account is invoiced by the operator of this server and needs no card.",
    "no_paid_plan",
  );

const paymentsUnavailable = () =>
  unavailable("This server takes no payments yet; paid plans are not available.", "payments_unavailable", 3600);
