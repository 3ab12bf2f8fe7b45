import type { CredentialVerbs, Store } from "./store.ts";

/** About 500 bytes each. */
const maxCachedKeys = 10_000;

/** The verbs after which a key may stand for something else: another tier, a suspension, nothing at all. */
const changing = [
  "setTier",
  "suspend",
  "resume",
  "changeEmail",
  "setPassword",
  "replacePassword",
  "deleteTenant",
  "rotateApiKey",
  "endAllSessions",
  "openVerification",
  "giveUpVerification",
  "settleVerification",
  "settleCharge",
  "failCharge",
  "awaitConfirmation",
] as const satisfies readonly (keyof Store)[];

type Found = NonNullable<Awaited<ReturnType<CredentialVerbs["findApiKey"]>>>;

/**
 * Keeps in memory whose API key is whose: every event asks, and the read took a fifth of the time of accepting and
 * delivering it. One process owns the database, so whatever changes an account comes through here; the changes are rare,
 * and each lets go of everything. Keys that nobody has are not kept: strangers could fill the memory with them.
 */
export function withKeyCache(store: Store): Store {
  const cache = new Map<string, Found>();

  const forgetting = Object.fromEntries(
    changing.map((verb) => {
      const write = store[verb] as (...args: unknown[]) => Promise<unknown>;
      // Cleared after the commit and before the caller hears of it: what was read meanwhile may be old.
      return [verb, (...args: unknown[]) => write(...args).finally(() => cache.clear())];
    }),
  ) as Pick<Store, (typeof changing)[number]>;

  return {
    ...store,
    ...forgetting,
    async findApiKey(hash) {
      const name = Buffer.from(hash.buffer, hash.byteOffset, hash.byteLength).toString("latin1");
      const cached = cache.get(name);
      if (cached) return cached;
      const found = await store.findApiKey(hash);
      if (found) {
        if (cache.size >= maxCachedKeys) cache.clear();
        cache.set(name, found);
      }
      return found;
    },
  };
}
