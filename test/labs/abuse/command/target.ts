import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openDataDir } from "../../../../src/data-dir.ts";
import type { Tier } from "../../../../src/domain/tenant.ts";
import { systemClock } from "../../../../src/lib/clock.ts";
import { openStore } from "../../../../src/store/open.ts";
import type { Store } from "../../../../src/store/store.ts";
import { seedTenantIn } from "../../../support/seed-tenant.ts";
import { issueSession } from "../../../support/seeded-account.ts";
import type { Api } from "../../bench/tenants.ts";

/** What an attacker has: a server, and accounts of its own on it. */
export interface AttackTarget {
  readonly port: number;
  readonly accounts: readonly Account[];
}

export interface Account {
  readonly id: string;
  readonly apiKey: string;
  readonly session: string;
  /** Of those that the operator made. */
  readonly password?: string;
}

/** One that was put into the store, which knows it by its key. */
export interface SeededAccount extends Account {
  readonly key: number;
}

/**
 * Public mode, as strangers meet it, with a trusted proxy on this machine in whose name an attack comes from many
 * addresses. Deliveries to this machine are possible only while strangers cannot sign up, so the operator makes the accounts.
 */
export const targetSettings: Readonly<Record<string, string>> = {
  POSTRIDER_PUBLIC_URL: "https://relay.example.com",
  POSTRIDER_SIGNUP: "closed",
  POSTRIDER_ALLOW_TARGETS: "127.0.0.0/8",
  POSTRIDER_TRUSTED_PROXIES: "127.0.0.1/32",
};

/** The server hashes at most four passwords at once. */
const concurrency = 4;

/**
 * Accounts straight in the store, before a server opens it, for attacks by many that never log in. The first one is the
 * healthy tenant's.
 * @param dataDir that of the server to come
 * @param tier of the accounts after the first one
 * @param fill puts into the store what those accounts have in it
 */
export async function seedAccounts(
  dataDir: string,
  {
    count,
    tier = "enterprise",
    fill = async () => {},
  }: {
    count: number;
    tier?: Tier | undefined;
    fill?: ((store: Store, accounts: readonly SeededAccount[]) => Promise<void>) | undefined;
  },
): Promise<Account[]> {
  const path = join(dataDir, "data");
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const opened = openDataDir(path);
  const { store } = await openStore({ dataDir: path, clock: systemClock });
  try {
    const accounts = await Promise.all(
      Array.from({ length: count }, async (_, n): Promise<SeededAccount> => {
        const plan = n === 0 ? "enterprise" : tier;
        const { tenant, apiKey } = await seedTenantIn({ store, dataDir: path }, { tier: plan });
        return { key: tenant.key, id: tenant.id, apiKey, session: issueSession({ dataDir: path }, tenant.id) };
      }),
    );
    await fill(store, accounts.slice(1));
    return accounts;
  } finally {
    await store.close();
    opened.release();
  }
}

/**
 * Accounts with passwords, made by the operator.
 * @param dataDir that of the server, for the operator's token
 */
export async function makeAccounts(api: Api, dataDir: string, count: number): Promise<Account[]> {
  const operatorToken = readFileSync(join(dataDir, "data", "operator-token"), "utf8").trim();
  const accounts: Account[] = [];
  const numbers = Array.from({ length: count }, (_, n) => n).values();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (const n of numbers) accounts[n] = await makeAccount(api, operatorToken);
    }),
  );
  return accounts;
}

async function makeAccount(api: Api, operatorToken: string): Promise<Account> {
  const { tenant_id: id, password } = await api<{ tenant_id: string; password: string }>(
    "POST",
    "/operator/tenants",
    operatorToken,
    {},
  );
  await api("PUT", `/operator/tenants/${id}/tier`, operatorToken, { tier: "enterprise" });
  const { token: session } = await api<{ token: string }>("POST", "/v1/tenants/auth/login", undefined, {
    loginId: id,
    password,
  });
  const [key] = await api<{ key: string }[]>("GET", "/v1/tenants/api-keys", session);
  if (key === undefined) throw new Error(`The account ${id} has no API key.`);
  return { id, apiKey: key.key, session, password };
}

/** How often what was answered: statuses, and words for connections that had no answer. */
export type Tally = Record<string, number>;

export const count = (tally: Tally, what: string | number, times = 1): void => {
  tally[what] = (tally[what] ?? 0) + times;
};
