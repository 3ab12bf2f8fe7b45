import type { ApiKey } from "../../domain/credentials.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { RegisteredWebhook } from "../../domain/tenant-state.ts";
import { createReadCache } from "../../lib/read-cache.ts";
import { standingInPostgres, toWebhook, type WebhookRow } from "../webhook-rows.ts";
import type { Pool } from "./pool.ts";

/** What a node keeps of a living tenant, so that it can check the rules for its events without reading anything. */
export interface KeptTenant {
  /** A statement that compares this with the version in the tenant's row finds out whether it is still current. */
  readonly version: number;
  readonly tenant: Tenant;
  readonly webhooks: readonly RegisteredWebhook[];
  /** By id; only those that had not expired when they were read. */
  readonly apiKeys: ReadonlyMap<string, Pick<ApiKey, "expiresAt">>;
}

export interface KeptTenants {
  get(tenantKey: number): KeptTenant | undefined;
  /** Null: the tenant is gone. */
  read(tenantKey: number): Promise<KeptTenant | null>;
  forget(tenantKey: number): void;
  forgetAll(): void;
}

/** How many are kept, at 1 KiB each. */
const keptLimit = 10_000;

const columns = `key::float8 as key, id, name, email, tier, enforced_tier as "enforcedTier",
  password_hash as "passwordHash", session_version as "sessionVersion", created_at::float8 as "createdAt",
  operator_suspended_at::float8 as "operatorSuspendedAt", payment_suspended_at::float8 as "paymentSuspendedAt",
  past_due_at::float8 as "pastDueAt", own_events_per_month::float8 as "ownEventsPerMonth",
  own_webhooks::float8 as "ownWebhooks", own_retention_days as "ownRetentionDays",
  own_payload_days as "ownPayloadDays", own_storage_bytes::float8 as "ownStorageBytes",
  storage_full_at::float8 as "storageFullAt"`;

export function createKeptTenants(pool: Pool, now: () => number): KeptTenants {
  const cache = createReadCache<number, KeptTenant>(keptLimit);
  const underWay = new Map<number, Promise<KeptTenant | null>>();

  /** Reads the version first: what is read after it may be newer, and then counts as outdated. */
  async function load(tenantKey: number): Promise<KeptTenant | null> {
    const [row] = await pool.read<Tenant & { version: number }>(
      `select ${columns}, version from tenant where key = $1::bigint and deleted_at is null`,
      [tenantKey],
    );
    if (!row) return null;
    const [rows, apiKeys] = await Promise.all([
      pool.read<WebhookRow & Pick<RegisteredWebhook, "used">>(
        `select key::float8 as key, id, url, name, used, event_types as "eventTypes", ordered, paused,
           rate_limit as "rateLimit", max_concurrency as "maxConcurrency", sealed_headers as "sealedHeaders",
           ${standingInPostgres} from webhook
         where tenant_key = $1::bigint and removed_at is null order by position`,
        [tenantKey],
      ),
      pool.read<Pick<ApiKey, "id" | "expiresAt">>(
        `select id, expires_at::float8 as "expiresAt" from api_key
         where tenant_key = $1::bigint and (expires_at is null or expires_at > $2::bigint)`,
        [tenantKey, now()],
      ),
    ]);
    const { version, ...tenant } = row;
    const webhooks = rows.map(({ used, ...webhook }) => ({ ...toWebhook(webhook), used }));
    return { version, tenant, webhooks, apiKeys: new Map(apiKeys.map(({ id, expiresAt }) => [id, { expiresAt }])) };
  }

  return {
    get: cache.get,
    read(tenantKey) {
      const others = underWay.get(tenantKey);
      if (others !== undefined) return others;
      const loading = cache.read(tenantKey, () => load(tenantKey)).finally(() => underWay.delete(tenantKey));
      underWay.set(tenantKey, loading);
      return loading;
    },
    forget: cache.forget,
    forgetAll: cache.forgetAll,
  };
}
