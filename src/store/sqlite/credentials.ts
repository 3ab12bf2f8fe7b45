import { and, count, desc, eq, gt, isNotNull, isNull, lte, min, or, sql } from "drizzle-orm";
import type { ApiKey, SigningKey } from "../../domain/credentials.ts";
import { rateLimited } from "../../domain/errors.ts";
import { accountGone } from "../../domain/standing.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { type CredentialVerbs, credentialLimits } from "../store.ts";
import type { Connection } from "./connection.ts";
import { type Job, refuse } from "./lane.ts";
import * as t from "./schema.ts";
import { tenantColumns } from "./tenant-page.ts";

const apiKeyColumns = {
  id: t.apiKey.id,
  sealed: t.apiKey.sealed,
  createdAt: t.apiKey.createdAt,
  lastUsedAt: t.apiKey.lastUsedAt,
  expiresAt: t.apiKey.expiresAt,
};

const signingKeyColumns = {
  id: t.signingKey.id,
  publicKey: t.signingKey.publicKey,
  sealedSeed: t.signingKey.sealedSeed,
  activatesAt: t.signingKey.activatesAt,
  retiresAt: t.signingKey.retiresAt,
};

export function credentialVerbs({ db, lane, pages }: Connection): CredentialVerbs {
  const keyByHash = db
    .select({ apiKeyId: t.apiKey.id, expiresAt: t.apiKey.expiresAt, tenant: tenantColumns })
    .from(t.apiKey)
    .innerJoin(t.tenant, eq(t.tenant.key, t.apiKey.tenantKey))
    .where(and(eq(t.apiKey.hash, sql.placeholder("hash")), isNull(t.tenant.deletedAt)))
    .prepare();
  const sessionById = db
    .select({ id: t.endedSession.id })
    .from(t.endedSession)
    .where(eq(t.endedSession.id, sql.placeholder("id")))
    .prepare();

  const ofTenant = eq(t.apiKey.tenantKey, sql.placeholder("tenantKey"));
  const newestBeyondLimit = db
    .select({ key: t.apiKey.key })
    .from(t.apiKey)
    .where(ofTenant)
    .orderBy(desc(t.apiKey.key))
    .limit(1)
    .offset(credentialLimits.apiKeys);
  const forgetOldestApiKeys = db
    .delete(t.apiKey)
    .where(and(ofTenant, lte(t.apiKey.key, sql`(${newestBeyondLimit})`)))
    .prepare();

  /** A write for a tenant that must still exist. */
  const forTenant = <T>(tenantKey: number, job: Job<T>) =>
    lane.submit<T>((tx) => (pages(tx, tenantKey).gone ? refuse(accountGone()) : job(tx)));

  return {
    apiKeys: async (tenantKey) =>
      db
        .select(apiKeyColumns)
        .from(t.apiKey)
        .where(eq(t.apiKey.tenantKey, tenantKey))
        .orderBy(desc(t.apiKey.key))
        .all(),

    findApiKey: async (hash) => keyByHash.get({ hash: Buffer.from(hash) }) ?? null,

    rotateApiKey: (tenantKey, key, othersEndAt, now) =>
      forTenant<ApiKey>(tenantKey, () => {
        const endsLater = or(isNull(t.apiKey.expiresAt), gt(t.apiKey.expiresAt, othersEndAt));
        db.update(t.apiKey)
          .set({ expiresAt: othersEndAt })
          .where(and(eq(t.apiKey.tenantKey, tenantKey), endsLater))
          .run();
        const added = db
          .insert(t.apiKey)
          .values({
            tenantKey,
            id: key.id,
            hash: Buffer.from(key.hash),
            sealed: Buffer.from(key.sealed),
            createdAt: now,
          })
          .returning(apiKeyColumns)
          .get();
        forgetOldestApiKeys.run({ tenantKey });
        return added;
      }),

    touchApiKeys: (uses) =>
      lane.submit<void>(() => {
        for (const [id, lastUsedAt] of uses) {
          db.update(t.apiKey).set({ lastUsedAt }).where(eq(t.apiKey.id, id)).run();
        }
      }),

    signingKeys: async (tenantKey, now) =>
      db
        .select(signingKeyColumns)
        .from(t.signingKey)
        .where(
          and(
            eq(t.signingKey.tenantKey, tenantKey),
            or(isNull(t.signingKey.retiresAt), gt(t.signingKey.retiresAt, now)),
          ),
        )
        .orderBy(desc(t.signingKey.key))
        .all(),

    rotateSigningKey: (tenantKey, key, activatesAt, othersRetireAt, now) =>
      forTenant<SigningKey>(tenantKey, () => {
        const mine = eq(t.signingKey.tenantKey, tenantKey);
        const isStaying = lte(t.signingKey.activatesAt, Math.max(now, activatesAt));
        const isPublished = or(isNull(t.signingKey.retiresAt), gt(t.signingKey.retiresAt, now));
        const [staying] = db
          .select({ published: count(), firstRetiresAt: min(t.signingKey.retiresAt) })
          .from(t.signingKey)
          .where(and(mine, isStaying, isPublished))
          .all();
        if (staying && staying.published >= credentialLimits.signingKeys) {
          return refuse(tooManySigningKeys((staying.firstRetiresAt ?? othersRetireAt) - now));
        }
        // A key that was to take over later than this one never signs, so it need not be known.
        db.delete(t.signingKey)
          .where(and(mine, gt(t.signingKey.activatesAt, Math.max(now, activatesAt))))
          .run();
        const retiresLater = or(isNull(t.signingKey.retiresAt), gt(t.signingKey.retiresAt, othersRetireAt));
        db.update(t.signingKey).set({ retiresAt: othersRetireAt }).where(and(mine, retiresLater)).run();
        return db
          .insert(t.signingKey)
          .values({
            tenantKey,
            id: key.id,
            publicKey: Buffer.from(key.publicKey),
            sealedSeed: Buffer.from(key.sealedSeed),
            activatesAt,
          })
          .returning(signingKeyColumns)
          .get();
      }),

    signingSecrets: async (tenantKey, now) =>
      db
        .select({ sealed: t.signingSecret.sealed, expiresAt: t.signingSecret.expiresAt })
        .from(t.signingSecret)
        .where(
          and(
            eq(t.signingSecret.tenantKey, tenantKey),
            or(isNull(t.signingSecret.expiresAt), gt(t.signingSecret.expiresAt, now)),
          ),
        )
        .orderBy(desc(t.signingSecret.key))
        .all(),

    rotateSigningSecret: (tenantKey, sealed, othersEndAt, now) =>
      forTenant<void>(tenantKey, () => {
        const mine = eq(t.signingSecret.tenantKey, tenantKey);
        db.delete(t.signingSecret)
          .where(and(mine, isNotNull(t.signingSecret.expiresAt)))
          .run();
        db.update(t.signingSecret).set({ expiresAt: othersEndAt }).where(mine).run();
        db.insert(t.signingSecret)
          .values({ tenantKey, sealed: Buffer.from(sealed), createdAt: now })
          .run();
      }),

    endSession: (id, expiresAt) =>
      lane.submit<void>(() => {
        db.insert(t.endedSession).values({ id, expiresAt }).onConflictDoNothing().run();
      }),

    endAllSessions: (tenantKey) =>
      forTenant<Tenant>(tenantKey, (tx) => {
        const page = pages(tx, tenantKey);
        page.tenant = db
          .update(t.tenant)
          .set({ sessionVersion: sql`${t.tenant.sessionVersion} + 1` })
          .where(eq(t.tenant.key, tenantKey))
          .returning(tenantColumns)
          .get();
        return page.tenant;
      }),

    isSessionEnded: async (id) => sessionById.get({ id }) !== undefined,

    rememberLogin: (tenantKey, address, now) =>
      forTenant<void>(tenantKey, () => {
        db.insert(t.loginAddress)
          .values({ tenantKey, address, lastLoginAt: now })
          .onConflictDoUpdate({
            target: [t.loginAddress.tenantKey, t.loginAddress.address],
            set: { lastLoginAt: now },
          })
          .run();
      }),

    async hasLoggedInSince(tenantKey, address, since) {
      const found = db
        .select({ at: t.loginAddress.lastLoginAt })
        .from(t.loginAddress)
        .where(and(eq(t.loginAddress.tenantKey, tenantKey), eq(t.loginAddress.address, address)))
        .get();
      return found !== undefined && found.at >= since;
    },
  };
}

const tooManySigningKeys = (leftMs: number) =>
  rateLimited(
    `The account has ${credentialLimits.signingKeys} published signing keys, which is the limit; wait for Retry-After, when the first of them is no longer needed.`,
    "too_many_signing_keys",
    leftMs / 1000,
  );
