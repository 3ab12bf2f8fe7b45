import type { Account } from "../client/account.ts";
import { refusalOf, textIn } from "../client/answer.ts";
import type { Reply } from "../client/server.ts";
import { type Registered, readWebhookList } from "../client/webhook.ts";
import { type Entry, inOwnWords, isOfTyped } from "./change.ts";

/** How the latest deliveries to a webhook went. */
export interface HealthRow {
  readonly id: string;
  readonly delivered: number;
  readonly failed: number;
  readonly pending: number;
  readonly lastDeliveredAt: string | null;
  readonly lastFailedAt: string | null;
  readonly lastErrorCode: string | null;
  /** Of the latest attempt; absent when it got no response. */
  readonly lastStatusCode?: number;
}

/** Deliveries of the last 24 hours that fail alike. */
export interface FailureRow {
  readonly webhookId: string | null;
  readonly errorCode: string | null;
  readonly statusCode: number | null;
  readonly lastFailedAt: string;
}

type Client = Pick<Account, "call" | "callOnce" | "url">;

export const readHealth = async (account: Client) =>
  (await read(account, "/v1/tenants/webhooks/health")).json as readonly HealthRow[];

export async function readFailures(account: Client): Promise<readonly FailureRow[]> {
  const { groups, unlisted = [] } = (await read(account, "/v1/failures")).json as {
    readonly groups: readonly FailureRow[];
    /** Sums of the smaller groups; older servers have none. */
    readonly unlisted?: readonly FailureRow[];
  };
  return [...groups, ...unlisted];
}

async function read(account: Client, path: string) {
  const reply = await account.call("GET", path);
  if (reply.status !== 200) throw refusalOf(account, reply);
  return reply;
}

const remedies: Readonly<Record<string, string>> = {
  too_many_webhooks: "postrider webhooks remove ID|URL",
  duplicate_webhook: "postrider webhooks list",
  webhooks_changed: "the same command again, when nothing else changes them",
};

const remediesOfTyped: Readonly<Record<string, string>> = {
  invalid_webhook_url: "postrider webhooks add https://example.com/hook",
  invalid_event_type: "--type 'order.*,invoice.paid'",
};

/** How often a change is made again to a list that somebody else has changed meanwhile. */
const mostTries = 5;

/**
 * Changes the list as it is now: if somebody else has changed it since it was read, it is read again, and the change is made
 * to that.
 * @throws StartupError
 */
export async function changeList(account: Client, change: (listed: readonly Registered[]) => readonly Entry[]) {
  for (let tries = 1; ; tries++) {
    const { webhooks, etag } = await readWebhookList(account);
    const entries = change(webhooks);
    // Not repeated if it may have arrived, so that nothing is reported as failed that took effect.
    const doubt = "The webhooks may have changed. Try: postrider webhooks list";
    const headers = etag === null ? {} : { "If-Match": etag };
    const reply = await account.callOnce("PUT", "/v1/tenants/webhooks", entries, doubt, headers);
    if (reply.status === 200) return;
    if (reply.status === 412 && tries < mostTries) continue;
    throw refusalOfList(account, reply, entries, webhooks);
  }
}

function refusalOfList(account: Client, reply: Reply, entries: readonly Entry[], listed: readonly Registered[]) {
  const [message, code] = [textIn(reply.json, "message"), textIn(reply.json, "code") ?? ""];
  if (message === null) return refusalOf(account, reply);
  const words = inOwnWords(message, entries, listed);
  const isTyped = isOfTyped(words);
  const remedy = remedies[code] ?? (isTyped ? remediesOfTyped[code] : undefined);
  // Without its code, a rule that something else breaks is no mistake on the command line.
  return refusalOf(account, { ...reply, json: { message: words, ...(isTyped && { code }) } }, remedy);
}
