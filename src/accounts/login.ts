import type { NoteStranger } from "../audit/strangers.ts";
import { byAccount } from "../domain/audit.ts";
import { knownAddressLifetimeMs } from "../domain/credentials.ts";
import { DomainError, invalidField, isUnavailable, rateLimited } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import { clientKey, clientNetwork } from "../lib/cidr.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import { createFairQueue, type FairQueue, QueueFull } from "../lib/fair-queue.ts";
import type { Log } from "../lib/log.ts";
import type { Count, Limit, Limits, Turn } from "../store/limits.ts";
import type { Store } from "../store/store.ts";
import { checkPassword, type Passwords, tooManyHashes } from "./password.ts";

const failures = (by: string, most: number): Limit => ({
  name: `failed logins by ${by}`,
  most,
  windowMs: 15 * 60_000,
  keys: 20_000,
});

/** Rules, section 4: failures within the window after which a login is refused. */
const failureLimits = {
  ofAccountFromAddress: failures("account and address", 10),
  fromAddress: failures("address", 50),
  ofAccount: failures("account", 100),
};

const successes = (by: string, most: number): Limit => ({
  name: `right logins by ${by}`,
  most,
  windowMs: 60_000,
  keys: 20_000,
});

/**
 * Correct passwords cost a hash as well. These count logins within the window: per account, when they come from an address it
 * is known from, and per network. A stranger's login never counts towards the first, so that limit does not reveal whether an
 * account exists.
 */
const successLimits = { ofAccount: successes("account", 300), ofNetwork: successes("network", 600) };

/**
 * Logins from one address wait for each other; beyond this number, those for the account with the most waiting are turned
 * away.
 */
const maxWaitingOfAddress = 1_000;

export interface Credentials {
  readonly loginId: string;
  readonly password: string;
}

export interface Login {
  /**
   * Refuses an address with too many failures, for any account or for the one it is logged in to, before its request is read.
   * @throws rate_limited `too_many_logins`
   */
  checkAddress(address: string, tenant?: Tenant): Promise<void>;
  /**
   * The account of these credentials.
   * @param address of the client
   * @throws unauthenticated `wrong_credentials`, the same for an unknown id and a wrong password; rate_limited
   *   `too_many_logins`; unavailable `busy`
   */
  logIn(credentials: Credentials, address: string): Promise<Tenant>;
  /**
   * Sets a new password, which ends every session. Wrong guesses of the current one count as failed logins: a stolen session
   * must not be a way around their limits.
   * @throws invalid `weak_password`, `wrong_password`; rate_limited `too_many_logins`; unavailable `busy`
   */
  changePassword(
    tenant: Tenant,
    change: { current_password: string; new_password: string },
    address: string,
  ): Promise<Tenant>;
}

export interface LoginDeps {
  store: Store;
  limits: Limits;
  clock: Clock;
  passwords: Passwords;
  log: Log;
  /** Local mode has no such limit: a script may log in as often as it likes. */
  localMode: boolean;
  noteStranger: NoteStranger;
  /** For metrics: called after every wrong password. */
  onFailure(): void;
}

export function createLogin({
  store,
  limits,
  clock,
  passwords,
  log,
  localMode,
  noteStranger,
  onFailure,
}: LoginDeps): Login {
  const turns = new Map<string, FairQueue>();

  /** Runs one task per address at a time, taking its accounts in turn. */
  async function inTurn<T>(from: string, account: string, task: () => Promise<T>): Promise<T> {
    const queue = turns.get(from) ?? createFairQueue({ slots: 1, maxWaiting: maxWaitingOfAddress });
    turns.set(from, queue);
    try {
      return await queue.run([account], task);
    } catch (error) {
      if (error instanceof QueueFull) throw tooManyHashes();
      throw error;
    } finally {
      if (queue.isIdle && turns.get(from) === queue) turns.delete(from);
    }
  }

  /**
   * Whether this is the account's password; a wrong one counts as a failure. An attempt is counted when it starts and taken
   * back if it did not fail: counted at its end, a thousand concurrent guesses would all find the limit untouched. Attempts
   * from one address run one after the other, so that correct passwords sent at the same time do not count as failures.
   *
   * @param account the key that failures are counted under: the tenant's id, or the login id itself for an unknown tenant
   */
  function isPassword(tenant: Tenant | null, account: string, password: string, address: string): Promise<boolean> {
    return inTurn(clientKey(address), account, () => checkInTurn(tenant, account, password, address));
  }

  async function checkInTurn(tenant: Tenant | null, account: string, password: string, address: string) {
    const from = clientKey(address);
    const isKnown = await store.hasLoggedInSince(tenant?.key ?? -1, from, clock.now() - knownAddressLifetimeMs);
    const wrong: Count[] = [
      { limit: failureLimits.ofAccountFromAddress, key: failureKey(account, from) },
      { limit: failureLimits.fromAddress, key: from },
    ];
    if (!isKnown) wrong.push({ limit: failureLimits.ofAccount, key: account });
    const right: Count[] = localMode ? [] : [{ limit: successLimits.ofNetwork, key: clientNetwork(address) }];
    if (isKnown && !localMode) right.push({ limit: successLimits.ofAccount, key: account });
    refuseWhenUsedUp(await limits.take(wrong, right));
    try {
      // Strangers who guess at an account must not delay those who have logged in to it before.
      const whose = { account: isKnown ? `known ${account}` : account, address };
      const matches = await passwords.verify(password, tenant?.passwordHash ?? null, whose);
      if (!matches) return false;
    } catch (error) {
      await limits.giveBack(wrong);
      throw error;
    }
    await limits.giveBack(wrong);
    for (const count of right) await limits.take([count]);
    return true;
  }

  /**
   * Only a convenience for the account's owner: neither a full disk nor a database that is lost in the middle must prevent a
   * login.
   */
  async function rememberAddress(tenant: Tenant, address: string): Promise<void> {
    try {
      const act = { ...byAccount(address), action: "login" } as const;
      await store.rememberLogin(tenant.key, clientKey(address), clock.now(), act);
    } catch (error) {
      const isRefused = error instanceof DomainError;
      if (isRefused && !isUnavailable(error)) throw error;
      const code = isRefused ? error.code : messageOf(error);
      log.write("warn", "login.not_remembered", { tenant: tenant.id, code });
    }
  }

  /**
   * For programs that ban addresses (operating, "The log"), which is why the address comes first. What was given as a login
   * id may be a password typed into the wrong field, so only the id of an existing account gets into the log.
   */
  function tellFailure(tenant: Tenant | null, address: string): void {
    onFailure();
    log.write("info", "login.failed", { address, tenantId: tenant?.id ?? null });
    if (tenant) noteStranger("login.failed", tenant.id, address);
  }

  return {
    async checkAddress(address, tenant) {
      const from = clientKey(address);
      const counts: Count[] = [{ limit: failureLimits.fromAddress, key: from }];
      if (tenant) counts.push({ limit: failureLimits.ofAccountFromAddress, key: failureKey(tenant.id, from) });
      refuseWhenUsedUp(await limits.peek(counts));
    },

    async logIn({ loginId, password }, address) {
      const tenant = await findByLoginId(store, loginId);
      const account = tenant?.id ?? loginId.toLowerCase();
      if (!(await isPassword(tenant, account, password, address)) || tenant === null) {
        tellFailure(tenant, address);
        throw wrongCredentials();
      }
      await rememberAddress(tenant, address);
      return tenant;
    },

    async changePassword(tenant, { current_password, new_password }, address) {
      checkPassword(new_password, "new_password");
      if (!(await isPassword(tenant, tenant.id, current_password, address))) {
        tellFailure(tenant, address);
        throw wrongPassword();
      }
      const passwordHash = await passwords.hash(new_password, { account: tenant.id, address });
      // Of several concurrent changes only one counts: for the others, the given password is no longer the current one.
      const act = { ...byAccount(address), action: "password.changed" } as const;
      const changed = await store.replacePassword(tenant.key, tenant.passwordHash, passwordHash, act);
      if (changed === null) throw wrongPassword();
      return changed;
    },
  };
}

/** Only an e-mail has an @, and only a paid account's is a login id. */
export const findByLoginId = (store: Pick<Store, "findTenant" | "findTenantByLoginEmail">, loginId: string) =>
  loginId.includes("@") ? store.findTenantByLoginEmail(loginId.toLowerCase()) : store.findTenant(loginId);

const failureKey = (account: string, from: string) => `${account} ${from}`;

const tooManyFailures = "Too many failed logins; retry after the number of seconds in Retry-After.";
const tooManyRightLogins =
  "Too many logins; reuse the session token, which is valid for two hours, or retry after the number of seconds in Retry-After.";

function refuseWhenUsedUp(turn: Turn): void {
  if (turn.ok) return;
  const isOfRight = Object.values(successLimits).includes(turn.by);
  throw rateLimited(isOfRight ? tooManyRightLogins : tooManyFailures, "too_many_logins", turn.retryAfterSeconds);
}

const wrongPassword = () => invalidField("current_password", "is not the password of this account", "wrong_password");

export const wrongCredentials = () =>
  new DomainError({
    kind: "unauthenticated",
    code: "wrong_credentials",
    message: "loginId or password is wrong.",
  });
