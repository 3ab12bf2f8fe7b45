import type { Change } from "../domain/change.ts";
import { createReadCache } from "../lib/read-cache.ts";
import type { CredentialVerbs, FoundApiKey } from "./store.ts";

/** About 500 bytes each. */
const maxCachedKeys = 10_000;

/**
 * Changes that do not affect what a key stands for. Any other kind drops all keys, so that one nobody has thought of costs
 * some reads, but no one's money or secrets.
 */
const harmless: ReadonlySet<string> = new Set([
  "webhooks_removed",
  "webhooks_throttled",
  "webhook_stands",
  "order_ended",
  "replay_cancelled",
  "signing_changed",
  "session_ended",
  "master_key_changed",
] satisfies Change["kind"][]);

export interface KeyCache extends Pick<CredentialVerbs, "findApiKey"> {
  /** To be called for every change, before its caller is answered. */
  heed(change: Change): void;
  /** For when it is not known what changed. */
  forgetAll(): void;
}

/**
 * Keeps in memory which account each API key belongs to: every event needs the lookup, and the read took a fifth of the time
 * of accepting and delivering it. Changes are rare, and each drops everything. Unknown keys are not cached: strangers could
 * fill the memory with them.
 */
export function createKeyCache(findApiKey: CredentialVerbs["findApiKey"]): KeyCache {
  const cache = createReadCache<string, FoundApiKey>(maxCachedKeys);

  return {
    findApiKey(hash) {
      const name = Buffer.from(hash.buffer, hash.byteOffset, hash.byteLength).toString("latin1");
      return cache.get(name) ?? cache.read(name, async () => findApiKey(hash));
    },
    forgetAll: cache.forgetAll,
    heed({ kind }) {
      if (!harmless.has(kind)) cache.forgetAll();
    },
  };
}
