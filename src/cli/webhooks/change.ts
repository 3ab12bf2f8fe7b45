import { StartupError } from "../../domain/errors.ts";
import type { Registered } from "../client/webhook.ts";
import { webhookWords } from "../webhook-words.ts";

/** How the list of webhooks changes, which the API takes only as a whole. */

/** An entry of the new list. What it does not say stays as it is for a URL that stays; only the name has to be repeated. */
export interface Entry {
  readonly webhook_url: string;
  readonly name?: string;
  readonly event_types?: readonly string[];
  readonly paused?: boolean;
}

const staying = ({ url, name }: Registered): Entry => ({ webhook_url: url, name });

/** @throws StartupError when it is registered already: the server would name places in a list, or the limit first */
export function withAdded(listed: readonly Registered[], added: Entry): readonly Entry[] {
  const present = listed.find(({ url }) => asParsed(url) === asParsed(added.webhook_url));
  if (!present) return [...listed.map(staying), added];
  const shown = webhookWords(added.webhook_url);
  throw new StartupError(
    `${shown} is already registered as ${present.id}. To change it, try: the dashboard, or PUT /v1/tenants/webhooks`,
  );
}

/** As the server compares URLs: two spellings of one are the same webhook. */
const asParsed = (url: string) => URL.parse(url)?.href ?? url;

export const withoutOne = (listed: readonly Registered[], removed: Registered): readonly Entry[] =>
  listed.filter(({ id }) => id !== removed.id).map(staying);

export const withPaused = (listed: readonly Registered[], changed: Registered, paused: boolean): readonly Entry[] =>
  listed.map((webhook) => ({ ...staying(webhook), ...(webhook.id === changed.id && { paused }) }));

const ownWords: Readonly<Record<string, string>> = { webhook_url: "URL", name: "--name", event_types: "--type" };

/** Whether a refusal in our own words is of what was typed, not of what was registered before or of the whole list. */
export const isOfTyped = (words: string): boolean =>
  Object.values(ownWords).some((name) => words.startsWith(`${name} `));

/** A refusal, which names entries by their places in the list, in terms of the command line. */
export function inOwnWords(message: string, entries: readonly Entry[], listed: readonly Registered[]): string {
  return message
    .replace(/^The body/, "The list of webhooks")
    .replace("a valid URL such as https://example.com/hook", "valid")
    .replace("; null takes every event", "; without --type it takes every event")
    .replace(/\[(\d+)\]\.(\w+)(?:\[\d+\])?/g, (place, index: string, field: string) => {
      const registered = listed.find(({ url }) => url === entries[Number(index)]?.webhook_url);
      if (registered) return `the ${field === "webhook_url" ? "URL" : field} of ${registered.id}`;
      return ownWords[field] ?? place;
    });
}
