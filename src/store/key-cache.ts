import { createReadCache } from "../lib/read-cache.ts";
import type { BillingVerbs } from "./billing.ts";
import type { CredentialVerbs, TenantVerbs } from "./store.ts";

/** About 500 bytes each. */
const maxCachedKeys = 10_000;

/** The verbs that may change what an API key stands for are among these, and nowhere else. */
export type AccountVerbs = Omit<TenantVerbs, "eraseDeleted"> & CredentialVerbs & BillingVerbs;

/**
 * Those that never do: no account gets another tier, standing or version by them, and no key another end. What is not named
 * here lets go of all keys, so that a new verb which nobody has thought of costs some reads, and nobody's money or secrets.
 */
const harmless: ReadonlySet<string> = new Set([
  "createTenant",
  "findTenant",
  "findTenantByLoginEmail",
  "listTenants",
  "usage",
  "apiKeys",
  "findApiKey",
  "touchApiKeys",
  "signingKeys",
  "rotateSigningKey",
  "signingSecrets",
  "rotateSigningSecret",
  "endSession",
  "isSessionEnded",
  "rememberLogin",
  "hasLoggedInSince",
  "findVerification",
  "billingAccountOf",
  "books",
  "preparePage",
  "setPage",
  "dropPage",
  "endMonth",
  "prepareAttempt",
  "markSent",
  "keepWaiting",
  "lookUpSoon",
  "dueAccounts",
  "postpone",
  "planDays",
  "findCharge",
  "chargeHistory",
] satisfies (keyof AccountVerbs)[]);

type Found = NonNullable<Awaited<ReturnType<CredentialVerbs["findApiKey"]>>>;
type Verb = (...args: never[]) => Promise<unknown>;

/**
 * Keeps in memory whose API key is whose: every event asks, and the read took a fifth of the time of accepting and
 * delivering it. For a backend that hears of every change, as one that owns its database alone does. Changes are rare, and
 * each lets go of everything. Keys that nobody has are not kept: strangers could fill the memory with them.
 */
export function withKeyCache(verbs: AccountVerbs): AccountVerbs {
  const cache = createReadCache<string, Found>(maxCachedKeys);

  // After the change, whatever became of it, and before the caller hears of it.
  const forgetting = Object.entries<Verb>({ ...verbs })
    .filter(([name]) => !harmless.has(name))
    .map(([name, write]): [string, Verb] => [name, (...args) => write(...args).finally(cache.forgetAll)]);

  return {
    ...verbs,
    ...(Object.fromEntries(forgetting) as Partial<AccountVerbs>),

    async findApiKey(hash) {
      const name = Buffer.from(hash.buffer, hash.byteOffset, hash.byteLength).toString("latin1");
      return cache.get(name) ?? cache.read(name, () => verbs.findApiKey(hash));
    },
  };
}
