import { newTenantId } from "../../../../src/lib/id.ts";
import { median } from "../../bench/histogram.ts";
import type { Account } from "./target.ts";

/** How much longer a login takes for an id that does not exist than for one that does. */
export interface LoginTiming {
  readonly ids: string;
  readonly pairs: number;
  readonly knownMs: number;
  readonly unknownMs: number;
  /** Median of the differences within pairs, and an interval that holds the true one with 95 %. Shares of `knownMs`. */
  readonly difference: number;
  readonly from: number;
  readonly to: number;
}

export interface Ids {
  readonly ids: string;
  known(pair: number): string;
  unknown(pair: number): string;
}

export const idsOf = (accounts: readonly Account[], emails: readonly string[]): Ids[] => [
  { ids: "tenant ids", known: (pair) => accounts[pair % accounts.length]?.id ?? "", unknown: () => newTenantId() },
  {
    ids: "e-mail addresses",
    known: (pair) => emails[pair % emails.length] ?? "",
    unknown: (pair) => `nobody${pair}@${emails[0]?.split("@")[1]}`,
  },
];

const wrongPassword = "Wr0ng#Password";
/** Compilers and caches want some requests first. */
const warmupPairs = 20;

/**
 * Wrong passwords for a known and an unknown id in turn, one request at a time, in an order that chance decides: what else
 * the machine does meets both alike. Each comes from an address of its own, as a botnet's would, so no limit is reached.
 */
export async function measureLogins(port: number, { ids, known, unknown }: Ids, pairs: number): Promise<LoginTiming> {
  const times: Record<"known" | "unknown", number[]> = { known: [], unknown: [] };
  for (let pair = -warmupPairs; pair < pairs; pair++) {
    const order = Math.random() < 0.5 ? (["known", "unknown"] as const) : (["unknown", "known"] as const);
    for (const kind of order) {
      const number = pair + warmupPairs;
      const loginId = kind === "known" ? known(number) : unknown(number);
      const ms = await timeLogin(
        port,
        loginId,
        `2001:db8:${ids.length.toString(16)}:${number.toString(16)}${kind === "known" ? "1" : "2"}::1`,
      );
      if (pair >= 0) times[kind].push(ms);
    }
  }
  const knownMs = median(times.known);
  const differences = times.unknown.map((ms, pair) => (ms - (times.known[pair] ?? Number.NaN)) / knownMs);
  return {
    ids,
    pairs,
    knownMs,
    unknownMs: median(times.unknown),
    difference: median(differences),
    ...intervalOf(differences),
  };
}

async function timeLogin(port: number, loginId: string, from: string): Promise<number> {
  const startMs = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/v1/tenants/auth/login`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Forwarded-For": from },
    body: JSON.stringify({ loginId, password: wrongPassword }),
  });
  await response.arrayBuffer();
  const ms = performance.now() - startMs;
  if (response.status !== 401) throw new Error(`A wrong password for "${loginId}" was answered ${response.status}.`);
  return ms;
}

/** The interval of the median that is free of any assumption: of n values those at n/2 ± 0.98 √n, by rank. */
function intervalOf(values: readonly number[]): { from: number; to: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const reach = Math.ceil(0.98 * Math.sqrt(sorted.length));
  const at = (rank: number) => sorted[Math.min(Math.max(rank, 0), sorted.length - 1)] ?? Number.NaN;
  return { from: at(Math.floor(sorted.length / 2) - reach), to: at(Math.ceil(sorted.length / 2) + reach) };
}
