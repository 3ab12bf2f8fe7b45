import { StartupError } from "../../domain/errors.ts";
import { webhookWords } from "../webhook-words.ts";
import type { Account } from "./account.ts";
import { refusalOf } from "./answer.ts";
import type { Filtering } from "./filters.ts";

export interface Registered {
  readonly id: string;
  readonly url: string;
  readonly name: string;
}

/** A webhook with its settings: the fields that are shown. */
export interface WebhookRow extends Registered {
  readonly state: string;
  /** Null: every event. */
  readonly event_types: readonly string[] | null;
}

/** What stands before a webhook on the command line. */
type Prefix = "--webhook " | "";

/** Named in a message; a longer list would hide what it says. */
const mostNamed = 5;

export const readWebhooks = async (account: Pick<Account, "call" | "url">) => (await readWebhookList(account)).webhooks;

/** The webhooks, and the tag that tells this list from another. */
export async function readWebhookList(
  account: Pick<Account, "call" | "url">,
): Promise<{ webhooks: readonly Registered[]; etag: string | null }> {
  const reply = await account.call("GET", "/v1/tenants/webhooks");
  if (reply.status !== 200) throw refusalOf(account, reply);
  return { webhooks: reply.json as readonly Registered[], etag: reply.etag };
}

/** All webhooks with all their settings, and the answer's text. */
export async function readWebhookSettings(
  account: Pick<Account, "call" | "url">,
): Promise<{ text: string; webhooks: readonly WebhookRow[] }> {
  const reply = await account.call("GET", "/v1/tenants/webhooks?expand=true");
  if (reply.status !== 200) throw refusalOf(account, reply);
  return { text: reply.text, webhooks: reply.json as readonly WebhookRow[] };
}

const remediesOfStates: Readonly<Record<string, string>> = { disabled: "enable", paused: "resume" };

/** That a webhook gets no deliveries as it is, and what ends that; null if it gets them. */
export function stateHint({ id, state }: WebhookRow): string | null {
  const verb = remediesOfStates[state];
  return verb === undefined ? null : `Webhook ${id} is ${state}. Try: postrider webhooks ${verb} ${id}`;
}

/**
 * Filters whose webhook is one that the API knows. What is typed may also be a URL as the command line shows it, without its
 * query, if it is that of one registered webhook.
 * @param mustBeRegistered false: it may also be a removed one, which only the API knows
 * @throws StartupError that names those it may be
 */
export async function resolveWebhook<Fields extends Filtering>(
  fields: Fields,
  account: Pick<Account, "call" | "url">,
  mustBeRegistered: boolean,
): Promise<Fields> {
  if (fields.webhook === undefined) return fields;
  const typed = String(fields.webhook);
  // The API judges an id itself, but it does not name those that it could be.
  if (!mustBeRegistered && typed.startsWith("wh_")) return fields;
  const registered = await readWebhooks(account);
  const found = webhookMeant(typed, registered, "--webhook ");
  if (!found && mustBeRegistered) throw unknownWebhook(typed, registered, "--webhook ");
  // A whole URL also stands for webhooks that had it before.
  return { ...fields, webhook: found && found.url !== typed ? found.id : typed };
}

/** Why nothing was found for a webhook: it is not registered, so it may be misspelt; null if it is, or none was given. */
export async function hintAtWebhook(
  { webhook }: Filtering,
  account: Pick<Account, "call" | "url">,
): Promise<string | null> {
  if (webhook === undefined) return null;
  const typed = String(webhook);
  const registered = await readWebhooks(account);
  return webhookMeant(typed, registered, "--webhook ") ? null : unknownWebhook(typed, registered, "--webhook ").message;
}

/**
 * The registered webhook with this id, or with this URL, with or without its query.
 * @throws StartupError when several have the URL
 */
export function webhookMeant<Row extends Registered>(
  typed: string,
  registered: readonly Row[],
  prefix: Prefix,
): Row | undefined {
  const exactly = registered.find(({ id, url }) => id === typed || url === typed);
  if (exactly) return exactly;
  const alike = registered.filter(({ url }) => webhookWords(url) === typed);
  if (alike.length <= 1) return alike[0];
  throw new StartupError(
    `${alike.length} webhooks have the URL ${typed}, with different queries. Try: ${named(alike, prefix)}`,
  );
}

export function unknownWebhook(typed: string, registered: readonly Registered[], prefix: Prefix): StartupError {
  if (registered.length === 0) return new StartupError("The account has no webhooks. Try: postrider webhooks add URL");
  const shown = webhookWords(typed);
  const alike = shown === typed ? [] : registered.filter(({ url }) => webhookWords(url) === shown);
  if (alike.length > 0) {
    return new StartupError(`"${shown}" is registered, but not with that query. Try: ${named(alike, prefix)}`);
  }
  return new StartupError(
    `"${shown}" is not the id or the URL of a registered webhook. Try: ${named(registered, prefix)}`,
  );
}

/** `--webhook wh_1 (https://a.example/hook), or wh_2 (…)` */
function named(webhooks: readonly Registered[], prefix: Prefix): string {
  const shown = webhooks.slice(0, mostNamed).map(({ id, url }) => `${id} (${webhookWords(url)})`);
  const left = webhooks.length - shown.length;
  return `${prefix}${shown.join(", or ")}${left > 0 ? `, or one of ${left} more` : ""}`;
}
