import { and, desc, eq, inArray, isNull, sql } from "drizzle-orm";
import { changed } from "../../domain/change.ts";
import type { ApiKey, SigningKey } from "../../domain/credentials.ts";
import {
  isPublished,
  isSigning,
  rotateApiKeys,
  rotateSigningKeys,
  rotateSigningSecrets,
} from "../../domain/rotation.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { withoutSessions } from "../../domain/tenant-change.ts";
import type { CredentialVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { tenantColumns } from "./held-tenants.ts";
import { livingTenants } from "./living-tenants.ts";
import * as t from "./schema.ts";
import { createTenantRows } from "./tenant-rows.ts";
import { refuse } from "./transaction.ts";

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

export function credentialVerbs({ client, db, writer, hold, audit }: Connection): CredentialVerbs {
  const tenants = createTenantRows(client);
  // `+?`, here and below: see `openCharges`.
  const keyByHash = db
    .select({ apiKeyId: t.apiKey.id, expiresAt: t.apiKey.expiresAt, tenant: tenantColumns })
    .from(t.apiKey)
    .innerJoin(t.tenant, eq(t.tenant.key, t.apiKey.tenantKey))
    .where(and(eq(t.apiKey.hash, sql`+${sql.placeholder("hash")}`), isNull(t.tenant.deletedAt)))
    .prepare();
  const tenantOfSession = db
    .select(tenantColumns)
    .from(t.tenant)
    .leftJoin(t.endedSession, eq(t.endedSession.id, sql`+${sql.placeholder("sessionId")}`))
    .where(
      and(eq(t.tenant.id, sql`+${sql.placeholder("tenantId")}`), isNull(t.tenant.deletedAt), isNull(t.endedSession.id)),
    )
    .prepare();
  // A flood of password guesses runs this for each one; rebuilt every time, it took a quarter of this thread.
  const lastLoginAt = db
    .select({ at: t.loginAddress.lastLoginAt })
    .from(t.loginAddress)
    .where(
      and(
        eq(t.loginAddress.tenantKey, sql`+${sql.placeholder("tenantKey")}`),
        eq(t.loginAddress.address, sql`+${sql.placeholder("address")}`),
      ),
    )
    .prepare();

  const apiKeysOf = (tenantKey: number) =>
    db
      .select({ key: t.apiKey.key, ...apiKeyColumns })
      .from(t.apiKey)
      .where(eq(t.apiKey.tenantKey, tenantKey))
      .orderBy(desc(t.apiKey.key))
      .all();
  // Both are read before an account's first delivery in a minute; rebuilt every time, they took as long as the rest of it.
  const signingKeysByTenant = db
    .select({ key: t.signingKey.key, ...signingKeyColumns })
    .from(t.signingKey)
    .where(eq(t.signingKey.tenantKey, sql`+${sql.placeholder("tenantKey")}`))
    .orderBy(desc(t.signingKey.key))
    .prepare();
  const signingSecretsByTenant = db
    .select({ key: t.signingSecret.key, sealed: t.signingSecret.sealed, expiresAt: t.signingSecret.expiresAt })
    .from(t.signingSecret)
    .where(eq(t.signingSecret.tenantKey, sql`+${sql.placeholder("tenantKey")}`))
    .orderBy(desc(t.signingSecret.key))
    .prepare();
  const signingKeysOf = (tenantKey: number) => signingKeysByTenant.all({ tenantKey });
  const signingSecretsOf = (tenantKey: number) => signingSecretsByTenant.all({ tenantKey });

  const forTenant = livingTenants({ writer, hold, audit });

  return {
    apiKeys: async (tenantKey) => apiKeysOf(tenantKey).map(withoutKey),

    findApiKey: async (hash) => keyByHash.get({ hash: Buffer.from(hash) }) ?? null,

    rotateApiKey: (tenantKey, key, othersEndAt, now, act) =>
      forTenant<ApiKey>(tenantKey, act, (held, tx) => {
        const { ends, forgets } = rotateApiKeys(apiKeysOf(tenantKey), othersEndAt);
        if (ends.length > 0)
          db.update(t.apiKey).set({ expiresAt: othersEndAt }).where(inArray(t.apiKey.key, ends)).run();
        if (forgets.length > 0) db.delete(t.apiKey).where(inArray(t.apiKey.key, forgets)).run();
        if (othersEndAt <= now) {
          db.update(t.apiKey).set({ hash: sql`randomblob(32)` }).where(eq(t.apiKey.tenantKey, tenantKey)).run();
        }
        held.apiKeys = new Map();
        tx.changed({ ...changed(held.tenant), kind: "api_keys_changed" });
        return db
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
      }),

    touchApiKeys: (uses) =>
      writer.submit<void>(() => {
        for (const [id, lastUsedAt] of uses) {
          db.update(t.apiKey).set({ lastUsedAt }).where(eq(t.apiKey.id, id)).run();
        }
      }),

    signingKeys: async (tenantKey, now) =>
      signingKeysOf(tenantKey)
        .filter((key) => isPublished(key, now))
        .map(withoutKey),

    rotateSigningKey: (tenantKey, key, activatesAt, othersRetireAt, now, act) =>
      forTenant<SigningKey>(tenantKey, act, ({ tenant }, tx) => {
        const rotation = rotateSigningKeys(signingKeysOf(tenantKey), { othersRetireAt, now });
        if (rotation.kind === "refused") return refuse(rotation.error);
        if (rotation.ends.length > 0) {
          const isEnding = inArray(t.signingKey.key, rotation.ends);
          db.update(t.signingKey).set({ retiresAt: othersRetireAt }).where(isEnding).run();
        }
        tx.changed({ ...changed(tenant), kind: "signing_changed" });
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
      signingSecretsOf(tenantKey)
        .filter((secret) => isSigning(secret, now))
        .map(withoutKey),

    rotateSigningSecret: (tenantKey, sealed, othersEndAt, now, act) =>
      forTenant<void>(tenantKey, act, ({ tenant }, tx) => {
        const { ends, forgets } = rotateSigningSecrets(signingSecretsOf(tenantKey));
        if (forgets.length > 0) db.delete(t.signingSecret).where(inArray(t.signingSecret.key, forgets)).run();
        if (ends.length > 0) {
          db.update(t.signingSecret).set({ expiresAt: othersEndAt }).where(inArray(t.signingSecret.key, ends)).run();
        }
        tx.changed({ ...changed(tenant), kind: "signing_changed" });
        db.insert(t.signingSecret)
          .values({ tenantKey, sealed: Buffer.from(sealed), createdAt: now })
          .run();
      }),

    endSession: (id, expiresAt) =>
      writer.submit<void>((tx) => {
        db.insert(t.endedSession).values({ id, expiresAt }).onConflictDoNothing().run();
        tx.changed({ kind: "session_ended", sessionId: id });
      }),

    endAllSessions: (tenantKey, act) =>
      forTenant<Tenant>(tenantKey, act, (held, tx) => {
        tenants.change(tx, held, withoutSessions(held.tenant));
        return held.tenant;
      }),

    findSession: async (tenantId, sessionId) => tenantOfSession.get({ tenantId, sessionId }) ?? null,

    rememberLogin: (tenantKey, address, now, act) =>
      forTenant<void>(tenantKey, act, () => {
        db.insert(t.loginAddress)
          .values({ tenantKey, address, lastLoginAt: now })
          .onConflictDoUpdate({
            target: [t.loginAddress.tenantKey, t.loginAddress.address],
            set: { lastLoginAt: now },
          })
          .run();
      }),

    async hasLoggedInSince(tenantKey, address, since) {
      const found = lastLoginAt.get({ tenantKey, address });
      return found !== undefined && found.at >= since;
    },
  };
}

function withoutKey<Row extends { key: number }>({ key: _, ...row }: Row): Omit<Row, "key"> {
  return row;
}
