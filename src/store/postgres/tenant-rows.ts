import { eq, sql } from "drizzle-orm";
import { changesOf } from "../../domain/change.ts";
import { quotaOf } from "../../domain/limits.ts";
import type { TenantChange } from "../../domain/tenant.ts";
import { keeperOf, type LoginHolder, losesLogin } from "../../domain/tenant-change.ts";
import type { HeldTenant } from "./held-tenants.ts";
import type { Transaction } from "./pool.ts";
import * as t from "./schema.ts";
import type { WriteTransaction } from "./writes.ts";

const forgetOrderedText = `update invoice set new_email = null, new_password_hash = null
  where state = 'open' and account_key = (select key from billing_account where tenant_key = $1::bigint)`;

/** A tenant that the transaction has locked, in its current state. */
export type ChangingTenant = Pick<HeldTenant, "tenant">;

/**
 * Writes a change of a locked tenant to its row and to `held`, and has it announced; an empty change writes nothing. A
 * changed quota takes back what lanes have been granted and not spent: a lower one applies immediately. With a password end
 * the link that was to replace it (rules, section 16), and the login of an upgrade that is not settled: it was ordered
 * before, perhaps by whoever is now locked out. A login is taken from an account that does not keep it.
 */
export async function changeTenant(tx: WriteTransaction, held: ChangingTenant, change: TenantChange): Promise<void> {
  if (Object.keys(change).length === 0) return;
  const before = held.tenant;
  const { loginEmail: _, ...changed } = change;
  if (change.loginEmail) await takeLogin(tx, change.loginEmail, before.key);
  await tx.db.update(t.tenant).set(change).where(eq(t.tenant.key, before.key));
  if (change.passwordHash !== undefined) {
    await tx.run("delete from password_reset where tenant_key = $1::bigint", [before.key]);
    await tx.run(forgetOrderedText, [before.key]);
  }
  held.tenant = { ...before, ...changed };
  if (quotaOf(before) !== quotaOf(held.tenant)) {
    await tx.run("update usage set granted = used where tenant_key = $1::bigint and granted > used", [before.key]);
  }
  tx.changed(...changesOf(before, held.tenant));
}

/** Notes up to which event payloads of a tenant were erased. No node keeps that in memory, so it is not announced. */
export async function noteErased({ run }: Pick<Transaction, "run">, tenantKey: number, toSeq: number): Promise<void> {
  await run("update tenant set payloads_erased_to = greatest(payloads_erased_to, $2::bigint) where key = $1::bigint", [
    tenantKey,
    toSeq,
  ]);
}

/** The tenant that has this login; null when nobody has it. */
export async function holderOf({ db }: Pick<Transaction, "db">, loginEmail: string | null): Promise<number | null> {
  if (loginEmail === null) return null;
  const [row] = await db
    .select({ key: t.tenant.key })
    .from(t.tenant)
    .where(sql`${t.tenant.loginEmail} = ${loginEmail}`);
  return row?.key ?? null;
}

const holderText = `
  select tenant.key::float8 as key, enforced_tier as "enforcedTier", verified_at::float8 as "verifiedAt",
    verification.created_at::float8 as "askedAt"
  from tenant left join billing_account account on account.tenant_key = tenant.key
    left join card_verification verification on verification.account_key = account.key and verification.state = 'open'
  where login_email = $1`;

/** The holder of a login. It is locked, so that it does not verify its card in between. */
async function lockHolder(tx: WriteTransaction, loginEmail: string): Promise<LoginHolder | null> {
  const locked = await tx.run("select 1 from tenant where login_email = $1 for update", [loginEmail]);
  const [holder] = locked.length === 0 ? [] : await tx.run<LoginHolder>(holderText, [loginEmail]);
  return holder ?? null;
}

/**
 * As `holderOf`; null also when its holder loses it to whoever asks for it now. `changeTenant` then takes it, or `takeLogin`.
 */
export const lockKeeper = async (tx: WriteTransaction, loginEmail: string | null): Promise<number | null> =>
  loginEmail === null ? null : keeperOf(await lockHolder(tx, loginEmail), tx.now);

/**
 * Takes a login from a holder that does not keep it. One that has got it since the rule was asked stays: that is a violation,
 * and the verb runs again. @param tenantKey who takes it; null: it is about to be created
 */
export async function takeLogin(tx: WriteTransaction, loginEmail: string, tenantKey: number | null): Promise<void> {
  const holder = await lockHolder(tx, loginEmail);
  if (!holder || holder.key === tenantKey || !losesLogin(holder, tx.now)) return;
  await tx.run("update tenant set login_email = null where key = $1::bigint", [holder.key]);
}
