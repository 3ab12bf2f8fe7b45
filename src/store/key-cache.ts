import type { Change } from "../domain/change.ts";
import { createReadCache } from "../lib/read-cache.ts";
import type { CredentialVerbs, FoundApiKey } from "./store.ts";

/** About 500 bytes each. */
const maxCachedKeys = 10_000;

/**
 * Those that leave it as it is what a key stands for. What is not named here lets go of all keys, so that a kind of change
 * which nobody has thought of costs some reads, and nobody's money or secrets.
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
  /** Of every change, before whoever made it is answered. */
  heed(change: Change): void;
  /** What changed is not known. */
  forgetAll(): void;
}

/**
 * Keeps in memory whose API key is whose: every event asks, and the read took a fifth of the time of accepting and
 * delivering it. Changes are rare, and each lets go of everything. Keys that nobody has are not kept: strangers could fill
 * the memory with them.
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
