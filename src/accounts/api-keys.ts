import type { Origin } from "../domain/audit.ts";
import { type ApiKey, isActive, keyContext } from "../domain/credentials.ts";
import { apiKeyRefused } from "../domain/standing.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import { newApiKey, newId } from "../lib/id.ts";
import { formatIso } from "../lib/iso-time.ts";
import type { Vault } from "../lib/vault.ts";
import type { FoundApiKey, NewApiKey, Store } from "../store/store.ts";

const prefix = "svc_sk_";
const keyLength = prefix.length + 40;

/** The hash by which the store finds a key. A fast one is enough: a key has 238 bits, so it cannot be guessed. */
const hashOf = (key: string): Uint8Array => Bun.CryptoHasher.hash("sha256", key);

/** A new API key, hashed and encrypted; the listing shows it. */
export function makeApiKey(vault: Vault, tenantId: string): NewApiKey {
  const id = newId("key");
  const key = newApiKey();
  return { id, hash: hashOf(key), sealed: vault.seal(key, keyContext(tenantId, id)) };
}

export interface KeyHolder {
  readonly tenant: Tenant;
  readonly apiKeyId: string;
}

/**
 * Finds the holder of a key, synchronously when it is known. @throws unauthenticated, with the same wording whatever the
 * reason
 */
export type AuthenticateApiKey = (token: string) => KeyHolder | Promise<KeyHolder>;

/** Runs for every event: one SHA-256 and one read by a unique index. The use is noted in memory. */
export function createApiKeyAuthentication({
  store,
  clock,
  keyUse,
}: {
  store: Pick<Store, "findApiKey">;
  clock: Clock;
  keyUse: Pick<KeyUse, "note">;
}): AuthenticateApiKey {
  function holderOf(found: FoundApiKey | null): KeyHolder {
    if (found === null || !isActive(found, clock.now())) throw apiKeyRefused();
    keyUse.note(found.apiKeyId);
    return { tenant: found.tenant, apiKeyId: found.apiKeyId };
  }

  return function authenticateApiKey(token) {
    if (token.length !== keyLength || !token.startsWith(prefix)) throw apiKeyRefused();
    const found = store.findApiKey(hashOf(token));
    return found instanceof Promise ? found.then(holderOf) : holderOf(found);
  };
}

/** When keys were last used. Written at most once a minute, not with every event (rules, section 5). */
export interface KeyUse {
  note(apiKeyId: string): void;
  /** The last noted use that may not have been written yet; null if there is none. */
  unwritten(apiKeyId: string): number | null;
  /** Writes the uses noted since the last flush. A failure is ignored: they are kept for the next one. */
  flush(): Promise<void>;
}

const flushIntervalMs = 60_000;

export function createKeyUse({ store, clock }: { store: Pick<Store, "touchApiKeys">; clock: Clock }): KeyUse {
  let uses = new Map<string, number>();
  /** What is being written. */
  let written: ReadonlyMap<string, number> = new Map();
  let cancelTimer: (() => void) | null = null;

  function schedule(): void {
    cancelTimer ??= clock.after(flushIntervalMs, () => void flush());
  }

  async function flush(): Promise<void> {
    cancelTimer?.();
    cancelTimer = null;
    if (uses.size === 0) return;
    written = uses;
    uses = new Map();
    try {
      await store.touchApiKeys(written);
      written = new Map();
    } catch {
      // The store reports its own failures; uses noted in the meantime are newer.
      uses = new Map([...written, ...uses]);
      schedule();
    }
  }

  return {
    note(apiKeyId) {
      uses.set(apiKeyId, clock.now());
      schedule();
    },
    unwritten: (apiKeyId) => uses.get(apiKeyId) ?? written.get(apiKeyId) ?? null,
    flush,
  };
}

/** A key as the tenant sees it (specification, "API key record"). */
export interface ApiKeyRecord {
  readonly id: string;
  readonly key: string;
  readonly is_active: boolean;
  readonly created_at: string;
  readonly last_used: string | null;
  readonly expires_at: string | null;
}

export interface ApiKeys {
  /** Newest first, including inactive ones. */
  list(tenant: Tenant): Promise<ApiKeyRecord[]>;
  /** Adds a key; every other active one ends at the earlier of its own end and now + grace. */
  rotate(tenant: Tenant, gracePeriodSeconds: number, origin: Origin): Promise<ApiKeyRecord>;
}

export function createApiKeys({
  store,
  clock,
  vault,
  keyUse,
}: {
  store: Store;
  clock: Clock;
  vault: Vault;
  keyUse: Pick<KeyUse, "unwritten">;
}): ApiKeys {
  const lastUseOf = ({ id, lastUsedAt }: ApiKey): string | null => {
    const at = Math.max(lastUsedAt ?? 0, keyUse.unwritten(id) ?? 0);
    return at === 0 ? null : formatIso(at);
  };
  const toRecord = (tenant: Tenant, apiKey: ApiKey, now: number): ApiKeyRecord => ({
    id: apiKey.id,
    key: Buffer.from(vault.open(apiKey.sealed, keyContext(tenant.id, apiKey.id))).toString("utf8"),
    is_active: isActive(apiKey, now),
    created_at: formatIso(apiKey.createdAt),
    last_used: lastUseOf(apiKey),
    expires_at: apiKey.expiresAt === null ? null : formatIso(apiKey.expiresAt),
  });

  return {
    async list(tenant) {
      const now = clock.now();
      return (await store.apiKeys(tenant.key)).map((apiKey) => toRecord(tenant, apiKey, now));
    },

    async rotate(tenant, gracePeriodSeconds, origin) {
      const now = clock.now();
      const othersEndAt = now + gracePeriodSeconds * 1000;
      const made = makeApiKey(vault, tenant.id);
      const act = { ...origin, action: "api_key.rotated", detail: { key: made.id } } as const;
      return toRecord(tenant, await store.rotateApiKey(tenant.key, made, othersEndAt, now, act), now);
    },
  };
}
