import { emailTaken } from "../domain/standing.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

export interface LoginEmailDeps {
  store: Pick<Store, "findTenantByLoginEmail" | "releaseUnverifiedEmail" | "billingAccountOf" | "books">;
  clock: Pick<Clock, "now">;
  log: Log;
}

/** How long an account may keep an address without verifying a card. */
const unverifiedEmailMs = 24 * 60 * 60 * 1000;

/**
 * Decides who signs in with an e-mail address. Nobody proves that an address is theirs, but a card identifies a person. So an
 * account that has not verified one keeps its address for only a day; after that, the next account to ask for the address
 * gets it. The first account can still sign in with its id, and does not get the address back by verifying later.
 */
export function createLoginEmails({ store, clock, log }: LoginEmailDeps) {
  const unverifiedSince = () => clock.now() - unverifiedEmailMs;

  return {
    /** @throws invalid `email_taken` */
    async refuseTaken(email: string): Promise<void> {
      const holder = await store.findTenantByLoginEmail(email.toLowerCase());
      if (holder === null) return;
      const accountKey = await store.billingAccountOf(holder.key);
      const books = accountKey === null ? null : await store.books(accountKey);
      const isUnproven = holder.enforcedTier === null || holder.enforcedTier === "free";
      const askedAt = books?.account.verifiedAt === null ? books.verification?.createdAt : undefined;
      if (!isUnproven || askedAt === undefined || askedAt > unverifiedSince()) throw emailTaken();
    },

    /** Frees an address that `refuseTaken` let pass, just before it is taken. */
    async release(email: string): Promise<void> {
      const holder = await store.releaseUnverifiedEmail(email.toLowerCase(), unverifiedSince());
      if (holder) log.write("warn", "account.email_released", { tenant: holder.id });
    },
  };
}
