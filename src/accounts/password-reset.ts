import { createHash } from "node:crypto";
import { byAccount } from "../domain/audit.ts";
import { DomainError, invalid, rateLimited } from "../domain/errors.ts";
import { canGetMail, type MailFact, resetLifetimeMs } from "../domain/mail.ts";
import type { Tenant } from "../domain/tenant.ts";
import { clientKey } from "../lib/cidr.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import { newToken } from "../lib/id.ts";
import type { Log } from "../lib/log.ts";
import type { Vault } from "../lib/vault.ts";
import type { Limit, Limits } from "../store/limits.ts";
import type { Store } from "../store/store.ts";
import { findByLoginId } from "./login.ts";
import { checkPassword, type Passwords } from "./password.ts";

export interface PasswordResets {
  /** Refuses an address that asks too often, before its request is read. @throws forbidden `mail_off`, rate_limited */
  check(address: string): Promise<void>;
  /**
   * Has a link sent to an account's address, if the account exists and its address can get mail. Returns before anything is
   * looked up, so neither the response nor its timing tells whether it exists.
   * @throws rate_limited `too_many_resets`
   */
  order(loginId: string, address: string): Promise<void>;
  /** @throws invalid `weak_password`, `reset_link_invalid`; rate_limited `too_many_resets`; unavailable `busy` */
  use(token: string, newPassword: string, address: string): Promise<void>;
  /** Resolves when every mail ordered so far is in the outbox. */
  flush(): Promise<void>;
}

export interface PasswordResetDeps {
  store: Pick<
    Store,
    "findTenant" | "findTenantByLoginEmail" | "orderPasswordReset" | "findPasswordReset" | "usePasswordReset"
  >;
  limits: Limits;
  clock: Pick<Clock, "now">;
  passwords: Passwords;
  vault: Vault;
  log: Log;
  /** Called when a mail is in the outbox. Null: this server sends none. */
  onQueued: (() => void) | null;
}

/** Counted per address, for known and unknown accounts alike. */
const resets: Limit = { name: "password resets by address", most: 20, windowMs: 15 * 60_000, keys: 20_000 };

/** Lookups in progress at a time. Requests beyond that are dropped, which nobody can tell from a mail that is late. */
const mostUnderWay = 100;

const contextOf = (tenantId: string) => `${tenantId}:password reset`;
const hashOf = (token: string) => createHash("sha256").update(token).digest();

export function createPasswordResets(deps: PasswordResetDeps): PasswordResets {
  const { store, limits, clock, passwords, vault, log, onQueued } = deps;
  const underWay = new Set<Promise<void>>();

  async function take(ask: Limits["peek"], address: string): Promise<void> {
    const turn = await ask([{ limit: resets, key: clientKey(address) }]);
    if (!turn.ok) throw tooManyResets(turn.retryAfterSeconds);
  }

  async function send(loginId: string): Promise<void> {
    const tenant = await findByLoginId(store, loginId);
    if (!tenant || !canGetMail(tenant.email)) return;
    const token = newToken(200);
    const fact = seal(vault, tenant, token, clock.now() + resetLifetimeMs);
    const recipient = tenant.email.toLowerCase();
    // Anybody may name this address as the contact of a free account; its owner's link must not have to wait for theirs.
    const isLogin = (await store.findTenantByLoginEmail(recipient))?.key === tenant.key;
    const kind = isLogin ? "password.reset" : "password.reset_by_contact";
    const order = { kind, recipient, fact } as const;
    if (await store.orderPasswordReset(tenant.key, hashOf(token), order, clock.now())) onQueued?.();
  }

  return {
    async check(address) {
      if (!onQueued) throw mailOff();
      await take(limits.peek, address);
    },

    async order(loginId, address) {
      await take(limits.take, address);
      if (underWay.size >= mostUnderWay) return;
      const done = send(loginId)
        .catch((error: unknown) => log.write("warn", "password.reset_not_sent", { error: messageOf(error) }))
        .finally(() => underWay.delete(done));
      underWay.add(done);
    },

    async use(token, newPassword, address) {
      checkPassword(newPassword, "new_password");
      await take(limits.take, address);
      const tenant = await store.findPasswordReset(hashOf(token), clock.now());
      if (!tenant) throw linkInvalid();
      const passwordHash = await passwords.hash(newPassword, { account: tenant.id, address });
      const act = { ...byAccount(address), action: "password.reset" } as const;
      const changed = await store.usePasswordReset(hashOf(token), passwordHash, clock.now(), act);
      if (!changed) throw linkInvalid();
      log.write("info", "account.password_reset", { tenant: changed.id });
    },

    async flush() {
      await Promise.all(underWay);
    },
  };
}

const seal = (vault: Vault, { id }: Tenant, token: string, expiresAt: number): MailFact => ({
  tenantId: id,
  sealedToken: Buffer.from(vault.seal(token, contextOf(id))).toString("base64"),
  expiresAt,
});

/**
 * The fact with its link made readable; null when the link has expired or cannot be decrypted. Other facts are returned
 * unchanged.
 */
export function openResetFact(vault: Vault, fact: MailFact, now: number): MailFact | null {
  const { sealedToken, expiresAt, tenantId } = fact;
  if (typeof sealedToken !== "string") return fact;
  if (Number(expiresAt) <= now) return null;
  try {
    const token = vault.open(Buffer.from(sealedToken, "base64"), contextOf(String(tenantId)));
    return { ...fact, token: Buffer.from(token).toString("utf8") };
  } catch {
    // The master key has been replaced since. Other mail must not wait behind this one, and another link can be asked for.
    return null;
  }
}

export const mailOff = () =>
  new DomainError({
    kind: "forbidden",
    code: "mail_off",
    message: "This server sends no mail; ask its operator for a new password.",
  });

const linkInvalid = () => invalid("The link is not valid any more; ask for another one.", "reset_link_invalid");

export const tooManyResets = (retryAfterSeconds: number) =>
  rateLimited(
    `At most ${resets.most} password resets in 15 minutes can be asked for from one address; retry after the number of seconds in Retry-After.`,
    "too_many_resets",
    retryAfterSeconds,
  );
