import type { Account } from "../client/account.ts";
import { refusalOf, textIn } from "../client/answer.ts";
import type { Registered } from "../client/webhook.ts";
import { type Entry, inOwnWords } from "./change.ts";

/** A webhook with its settings: the fields that are shown. */
export interface WebhookRow extends Registered {
  readonly state: string;
  /** Null: every event. */
  readonly event_types: readonly string[] | null;
}

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

type Client = Pick<Account, "call" | "callOnce" | "url">;

/** All webhooks with all their settings, and the answer's text. */
export async function readSettings(account: Client): Promise<{ text: string; webhooks: readonly WebhookRow[] }> {
  const { text, json } = await read(account, "/v1/tenants/webhooks?expand=true");
  return { text, webhooks: json as readonly WebhookRow[] };
}

export const readHealth = async (account: Client) =>
  (await read(account, "/v1/tenants/webhooks/health")).json as readonly HealthRow[];

async function read(account: Client, path: string) {
  const reply = await account.call("GET", path);
  if (reply.status !== 200) throw refusalOf(account, reply);
  return reply;
}

const remedies: Readonly<Record<string, string>> = {
  too_many_webhooks: "postrider webhooks remove ID|URL",
  duplicate_webhook: "postrider webhooks list",
};

/** Replaces the list that was read. @throws StartupError */
export async function replaceList(account: Client, listed: readonly Registered[], entries: readonly Entry[]) {
  // Not repeated if it may have arrived: by then, somebody else may have changed the list.
  const doubt = "The webhooks may have changed. Try: postrider webhooks list";
  const reply = await account.callOnce("PUT", "/v1/tenants/webhooks", entries, doubt);
  if (reply.status === 200) return;
  const message = textIn(reply.json, "message");
  const json = message === null ? reply.json : { message: inOwnWords(message, entries, listed) };
  throw refusalOf(account, { ...reply, json }, remedies[textIn(reply.json, "code") ?? ""]);
}
