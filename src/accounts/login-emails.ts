import { emailTaken } from "../domain/standing.ts";
import type { Tenant } from "../domain/tenant.ts";
import { losesLogin } from "../domain/tenant-change.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

export interface LoginEmailDeps {
  store: Pick<Store, "findTenantByLoginEmail" | "billingAccountOf" | "books">;
  clock: Pick<Clock, "now">;
  log: Log;
}

/**
 * Decides who signs in with an e-mail address. Nobody proves that an address is theirs, but a card identifies a person. So an
 * account that has not verified one keeps its address for only a day; after that, the next account to ask for the address
 * gets it. The first account can still sign in with its id, and does not get the address back by verifying later.
 */
export function createLoginEmails({ store, clock, log }: LoginEmailDeps) {
  return {
    /**
     * @param count called before it says that an address is taken, and may refuse to: whoever asks has learnt of an account
     * @returns the account that loses the address to whoever asks for it now
     * @throws invalid `email_taken`
     */
    async refuseTaken(email: string, count: () => Promise<void>): Promise<Tenant | null> {
      const holder = await store.findTenantByLoginEmail(email.toLowerCase());
      if (holder === null) return null;
      const accountKey = await store.billingAccountOf(holder.key);
      const books = accountKey === null ? null : await store.books(accountKey);
      const verifiedAt = books?.account.verifiedAt ?? null;
      const askedAt = books?.verification?.createdAt ?? null;
      if (losesLogin({ ...holder, verifiedAt, askedAt }, clock.now())) return holder;
      await count();
      throw emailTaken();
    },

    /** To be called once the address is another account's. */
    noteLoss(holder: Tenant | null): void {
      if (holder) log.write("warn", "account.email_released", { tenant: holder.id });
    },
  };
}
