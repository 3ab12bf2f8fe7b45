import { type DomainError, invalidField } from "./errors.ts";
import { accountGone } from "./standing.ts";
import type { RegisteredWebhook, TenantState } from "./tenant-state.ts";
import { isDeliveredAlike, newStanding, usualSettings, type Webhook, type WebhookSettings } from "./webhook.ts";

/** An entry of a list that replaces the one before, with only the settings that it mentions. */
// The id is for a URL that is new: one that stays keeps its own.
export type ListedWebhook = Pick<Webhook, "id" | "url" | "name"> & Partial<WebhookSettings>;

/** A webhook that has no key yet. */
export type AddedWebhook = Omit<Webhook, "key">;

/**
 * What a new list does to each webhook:
 *
 *   its URL was registered ──▶ stays, with key, id and records; takes place, name and the settings that the new entry has
 *   its URL is new ──▶ added, with the usual settings where the entry says nothing
 *   registered, and not in the list
 *      ├──records may name it──▶ removed: its row stays for them
 *      └──it never had one──▶ removed and forgotten: lists that go to and fro would leave a row each time
 */
export type WebhookListChange =
  | {
      readonly kind: "replaced";
      /** In their new order; one that is added has no key yet. */
      readonly list: readonly (RegisteredWebhook | AddedWebhook)[];
      /** All that are no longer registered. */
      readonly removed: readonly number[];
      /** Of those, the ones whose rows are deleted. */
      readonly forgotten: readonly number[];
      /** Those that stay but whose queues follow new settings, or whose deliveries carry something else. */
      readonly throttled: readonly RegisteredWebhook[];
      /** Those that stay and are no longer ordered. */
      readonly unordered: readonly number[];
    }
  | { readonly kind: "refused"; readonly error: DomainError };

/** @param limit how many the account may have */
export function replaceWebhooks(
  { gone, webhooks }: Pick<TenantState, "gone" | "webhooks">,
  wanted: readonly ListedWebhook[],
  limit: number,
): WebhookListChange {
  if (gone) return { kind: "refused", error: accountGone() };
  if (wanted.length > limit) return { kind: "refused", error: tooManyWebhooks(wanted.length, limit) };
  const registered = new Map(webhooks.map((webhook) => [webhook.url, webhook]));
  const urls = new Set(wanted.map(({ url }) => url));
  const endsOrder = new Set(wanted.flatMap(({ url, ordered }) => (ordered === false ? [url] : [])));
  const leaving = webhooks.filter(({ url }) => !urls.has(url));
  const throttled: RegisteredWebhook[] = [];
  return {
    kind: "replaced",
    list: wanted.map((entry) => {
      const { id: _, ...wishes } = entry;
      const before = registered.get(entry.url);
      if (!before) return { ...usualSettings, ...newStanding, ...entry };
      const stays = { ...before, ...wishes };
      if (!isDeliveredAlike(before, stays)) throttled.push(stays);
      return stays;
    }),
    throttled,
    removed: leaving.map(({ key }) => key),
    forgotten: leaving.filter(({ used }) => used === false).map(({ key }) => key),
    unordered: webhooks.filter(({ url, ordered }) => ordered && endsOrder.has(url)).map(({ key }) => key),
  };
}

/** Specification, "Limits": more entries than the account may have get 400. */
const tooManyWebhooks = (given: number, limit: number) =>
  invalidField(
    "webhooks",
    `has ${given} entries, but the account may have ${limit}; leave some out or ask for a higher limit`,
    "too_many_webhooks",
  );
