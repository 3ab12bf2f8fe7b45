import { join } from "node:path";
import { saveWebhooks } from "../../support/saved-webhooks.ts";
import { startTestApp } from "../../support/test-app.ts";
import type { Group, Receiver } from "./catalogue.ts";

/** The number of webhooks with a hostile receiver. */
export const webhookCount = 512;

export interface Friendly {
  quick: string;
  slow: string;
}

/** An account and its webhooks; one event goes to all of them. */
export interface Crowd {
  readonly urls: readonly string[];
  apiKey: string;
  session: string;
}

/** Hostile crowds, and for each one that is as large and well-meant, for the warm-up. */
export interface Crowds {
  readonly hostile: Record<Group, Crowd>;
  readonly friendly: Record<Group, Crowd>;
  readonly healthy: Crowd;
  /** Whose webhook it is, by its URL. */
  readonly receiverOf: ReadonlyMap<string, Receiver>;
}

const groups: readonly Group[] = ["slow", "unread", "quick"];

/**
 * Spreads the webhooks over the receivers: one each for the quick ones, and the rest for those that take 10 s, so that a
 * thousand attempts to each of them end in minutes.
 */
export function spread(receivers: readonly Receiver[]): { crowds: Record<Group, string[]>; of: Map<string, Receiver> } {
  const quick = receivers.filter(({ group }) => group === "quick");
  const slow = receivers.filter(({ group }) => group !== "quick");
  const crowds: Record<Group, string[]> = { quick: [], slow: [], unread: [] };
  const of = new Map<string, Receiver>();
  for (let n = 0; n < webhookCount; n += 1) {
    const receiver = n < quick.length ? quick[n] : slow[(n - quick.length) % slow.length];
    if (receiver === undefined) break; // of a part of them
    const url = `${receiver.origin}/${n}`;
    crowds[receiver.group].push(url);
    of.set(url, receiver);
  }
  return { crowds, of };
}

/**
 * Makes the accounts in the data folder of a server that is not started yet: each has more webhooks than any plan allows.
 * @param friendly where the webhooks of the warm-up go, by scheme
 */
export async function makeCrowds(
  dataDir: string,
  receivers: readonly Receiver[],
  friendly: Readonly<Record<string, Friendly>>,
  healthyUrl: string,
): Promise<Crowds> {
  const { crowds, of } = spread(receivers);
  const server = await startTestApp({ dataDir: join(dataDir, "data") });
  const make = async (urls: readonly string[]): Promise<Crowd> => {
    const account = await server.account();
    // For its quota: that of a free account is 10,000 events a month.
    await account.setTier("enterprise");
    await saveWebhooks(server, account, urls);
    return { urls, apiKey: account.apiKey, session: account.jwt };
  };
  const counterpart = (url: string, n: number, group: Group) => {
    const scheme = url.startsWith("https") ? "https" : "http";
    return `${friendly[scheme]?.[group === "quick" ? "quick" : "slow"]}/${group}/${n}`;
  };
  const both: Partial<Record<Group, [Crowd, Crowd]>> = {};
  for (const group of groups) {
    const urls = crowds[group];
    both[group] = [await make(urls), await make(urls.map((url, n) => counterpart(url, n, group)))];
  }
  const healthy = await make([healthyUrl]);
  await server.stop({ keepData: true });
  const { quick, slow, unread } = both as Record<Group, [Crowd, Crowd]>;
  return {
    hostile: { quick: quick[0], slow: slow[0], unread: unread[0] },
    friendly: { quick: quick[1], slow: slow[1], unread: unread[1] },
    healthy,
    receiverOf: of,
  };
}
