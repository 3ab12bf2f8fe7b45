import { StartupError } from "../../domain/errors.ts";
import { webhookWords } from "../webhook-words.ts";
import type { Account } from "./account.ts";
import { refusalOf } from "./answer.ts";
import type { Filtering } from "./filters.ts";

interface Registered {
  readonly id: string;
  readonly url: string;
}

/** Named in a message; a longer list would hide what it says. */
const mostNamed = 5;

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
  const reply = await account.call("GET", "/v1/tenants/webhooks");
  if (reply.status !== 200) throw refusalOf(account, reply);
  const webhook = webhookMeant(String(fields.webhook), reply.json as readonly Registered[], mustBeRegistered);
  return { ...fields, webhook };
}

function webhookMeant(typed: string, registered: readonly Registered[], mustBeRegistered: boolean): string {
  if (registered.some(({ id, url }) => id === typed || url === typed)) return typed;
  const alike = registered.filter(({ url }) => webhookWords(url) === typed);
  const [only, another] = alike;
  if (only && another) {
    throw new StartupError(
      `${alike.length} webhooks have the URL ${typed}, with different queries. Try: ${named(alike)}`,
    );
  }
  if (only) return only.id;
  if (!mustBeRegistered) return typed;
  if (registered.length === 0) {
    throw new StartupError("The account has no webhooks. Try: register one with PUT /v1/tenants/webhooks.");
  }
  throw new StartupError(
    `--webhook must be the id or the URL of a registered webhook, not "${webhookWords(typed)}". Try: ${named(registered)}`,
  );
}

/** `--webhook wh_1 (https://a.example/hook), or wh_2 (…)` */
function named(webhooks: readonly Registered[]): string {
  const shown = webhooks.slice(0, mostNamed).map(({ id, url }) => `${id} (${webhookWords(url)})`);
  const left = webhooks.length - shown.length;
  return `--webhook ${shown.join(", or ")}${left > 0 ? `, or one of ${left} more` : ""}`;
}
