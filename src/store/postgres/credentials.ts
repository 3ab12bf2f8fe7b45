import { and, desc, eq, isNull, sql } from "drizzle-orm";
import { changed } from "../../domain/change.ts";
import {
  isPublished,
  isSigning,
  rotateApiKeys,
  rotateSigningKeys,
  rotateSigningSecrets,
} from "../../domain/rotation.ts";
import { accountGone } from "../../domain/standing.ts";
import { withoutSessions } from "../../domain/tenant-change.ts";
import type { CredentialVerbs } from "../store.ts";
import { noteAct } from "./audit.ts";
import type { Connection } from "./connection.ts";
import { tenantColumns } from "./held-tenants.ts";
import { livingTenants } from "./living-tenants.ts";
import { arrayText } from "./parameters.ts";
import type { Pool, Transaction } from "./pool.ts";
import * as t from "./schema.ts";
import { changeTenant } from "./tenant-rows.ts";

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

export function credentialVerbs({ pool, writes }: Connection): CredentialVerbs {
  const keyByHash = pool.db
    .select({ apiKeyId: t.apiKey.id, expiresAt: t.apiKey.expiresAt, tenant: tenantColumns })
    .from(t.apiKey)
    .innerJoin(t.tenant, eq(t.tenant.key, t.apiKey.tenantKey))
    .where(and(eq(t.apiKey.hash, sql.placeholder("hash")), isNull(t.tenant.deletedAt)))
    .prepare("api_key_by_hash");
  const tenantOfSession = pool.db
    .select(tenantColumns)
    .from(t.tenant)
    .leftJoin(t.endedSession, eq(t.endedSession.id, sql.placeholder("sessionId")))
    .where(and(eq(t.tenant.id, sql.placeholder("tenantId")), isNull(t.tenant.deletedAt), isNull(t.endedSession.id)))
    .prepare("tenant_of_session");

  const apiKeysByTenant = pool.db
    .select(apiKeyColumns)
    .from(t.apiKey)
    .where(eq(t.apiKey.tenantKey, sql.placeholder("tenantKey")))
    .orderBy(desc(t.apiKey.key))
    .prepare("api_keys");
  // Both are read before an account's first delivery in any minute.
  const signingKeysByTenant = signingKeysIn(pool.db);
  const signingSecretsByTenant = signingSecretsIn(pool.db);

  const forTenant = livingTenants({ writes });

  return {
    apiKeys: (tenantKey) => apiKeysByTenant.execute({ tenantKey }),

    findApiKey: async (hash) => (await keyByHash.execute({ hash }))[0] ?? null,

    rotateApiKey: (tenantKey, key, othersEndAt, now, act) =>
      forTenant(tenantKey, act, async (held, tx) => {
        const { ends, forgets } = rotateApiKeys(await endsOfKeys(tx, tenantKey), othersEndAt);
        await tx.db
          .update(t.apiKey)
          .set({ expiresAt: othersEndAt })
          .where(among(t.apiKey, tenantKey, ends));
        if (forgets.length > 0) await tx.db.delete(t.apiKey).where(among(t.apiKey, tenantKey, forgets));
        if (othersEndAt <= now) {
          await tx.db
            .update(t.apiKey)
            .set({ hash: sql`sha256(${t.apiKey.hash})` })
            .where(eq(t.apiKey.tenantKey, tenantKey));
        }
        tx.changed({ ...changed(held.tenant), kind: "api_keys_changed" });
        const [added] = await tx.db
          .insert(t.apiKey)
          .values({ tenantKey, createdAt: now, ...key })
          .returning(apiKeyColumns);
        return returned(added);
      }),

    touchApiKeys: async (uses) => {
      await pool.write(
        // Another node may have noted a later use.
        `update api_key set last_used_at = greatest(last_used_at, used.at)
         from unnest($1::text[], $2::bigint[]) as used (id, at) where api_key.id = used.id`,
        [arrayText([...uses.keys()]), arrayText([...uses.values()])],
      );
    },

    signingKeys: async (tenantKey, now) =>
      (await signingKeysByTenant.execute({ tenantKey })).filter((key) => isPublished(key, now)).map(withoutKey),

    rotateSigningKey: (tenantKey, key, activatesAt, othersRetireAt, now, act) =>
      forTenant(tenantKey, act, async (held, tx) => {
        const published = await signingKeysIn(tx.db).execute({ tenantKey });
        const rotation = rotateSigningKeys(published, { othersRetireAt, now });
        if (rotation.kind === "refused") throw rotation.error;
        await tx.db
          .update(t.signingKey)
          .set({ retiresAt: othersRetireAt })
          .where(among(t.signingKey, tenantKey, rotation.ends));
        tx.changed({ ...changed(held.tenant), kind: "signing_changed" });
        const [added] = await tx.db
          .insert(t.signingKey)
          .values({ tenantKey, activatesAt, ...key })
          .returning(signingKeyColumns);
        return returned(added);
      }),

    signingSecrets: async (tenantKey, now) =>
      (await signingSecretsByTenant.execute({ tenantKey })).filter((secret) => isSigning(secret, now)).map(withoutKey),

    rotateSigningSecret: (tenantKey, sealed, othersEndAt, now, act) =>
      forTenant(tenantKey, act, async (held, tx) => {
        const { ends, forgets } = rotateSigningSecrets(await signingSecretsIn(tx.db).execute({ tenantKey }));
        await tx.db.delete(t.signingSecret).where(among(t.signingSecret, tenantKey, forgets));
        const ended = { expiresAt: othersEndAt };
        await tx.db
          .update(t.signingSecret)
          .set(ended)
          .where(among(t.signingSecret, tenantKey, ends));
        tx.changed({ ...changed(held.tenant), kind: "signing_changed" });
        await tx.db.insert(t.signingSecret).values({ tenantKey, sealed, createdAt: now });
      }),

    endSession: (id, expiresAt) =>
      writes.submit(async (tx) => {
        await tx.db.insert(t.endedSession).values({ id, expiresAt }).onConflictDoNothing();
        tx.changed({ kind: "session_ended", sessionId: id });
      }),

    endAllSessions: (tenantKey, act) =>
      forTenant(tenantKey, act, async (held, tx) => {
        await changeTenant(tx, held, withoutSessions(held.tenant));
        return held.tenant;
      }),

    findSession: async (tenantId, sessionId) => (await tenantOfSession.execute({ tenantId, sessionId }))[0] ?? null,

    rememberLogin: (tenantKey, address, now, act) =>
      writes.submit(async (tx) => {
        // Waits for a deletion in progress.
        const [remembered] = await tx.run<{ id: string }>(
          `with living as (select key, id from tenant where key = $1::bigint and deleted_at is null for key share),
         remembered as (
           insert into login_address (tenant_key, address, last_login_at) select key, $2::text, $3::bigint from living
           on conflict (tenant_key, address) do update set last_login_at = excluded.last_login_at)
         select id from living`,
          [tenantKey, address, now],
        );
        if (!remembered) throw accountGone();
        if (act) await noteAct(tx, remembered.id, act);
      }),

    async hasLoggedInSince(tenantKey, address, since) {
      const [found] = await pool.db
        .select({ at: t.loginAddress.lastLoginAt })
        .from(t.loginAddress)
        .where(and(eq(t.loginAddress.tenantKey, tenantKey), eq(t.loginAddress.address, address)));
      return found !== undefined && found.at >= since;
    },
  };
}

/** A tenant's keys, newest first, as in the two queries below. Without the other columns: an account may have a thousand. */
const endsOfKeys = ({ run }: Transaction, tenantKey: number) =>
  run<{ key: number; expiresAt: number | null }>(
    `select key::float8 as key, expires_at::float8 as "expiresAt" from api_key
     where tenant_key = $1::bigint order by key desc`,
    [tenantKey],
  );

const signingKeysIn = (db: Pool["db"]) =>
  db
    .select({ key: t.signingKey.key, ...signingKeyColumns })
    .from(t.signingKey)
    .where(eq(t.signingKey.tenantKey, sql.placeholder("tenantKey")))
    .orderBy(desc(t.signingKey.key))
    .prepare("signing_keys");

const signingSecretsIn = (db: Pool["db"]) =>
  db
    .select({ key: t.signingSecret.key, sealed: t.signingSecret.sealed, expiresAt: t.signingSecret.expiresAt })
    .from(t.signingSecret)
    .where(eq(t.signingSecret.tenantKey, sql.placeholder("tenantKey")))
    .orderBy(desc(t.signingSecret.key))
    .prepare("signing_secrets");

type Credentials = typeof t.apiKey | typeof t.signingKey | typeof t.signingSecret;

/** A tenant's credentials with one of these keys. The statement's text is the same however many there are. */
const among = ({ tenantKey, key }: Credentials, ofTenant: number, keys: readonly number[]) =>
  and(eq(tenantKey, ofTenant), sql`${key} = any(${arrayText(keys)}::bigint[])`);

function returned<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error("A credential that was inserted was not returned");
  return row;
}

function withoutKey<Row extends { key: number }>({ key: _, ...row }: Row): Omit<Row, "key"> {
  return row;
}
