import type { ChangedWebhook } from "./change.ts";
import { DomainError, invalidField } from "./errors.ts";
import { accountGone } from "./standing.ts";
import type { RegisteredWebhook, TenantState } from "./tenant-state.ts";
import { isDeliveredAlike, newStanding, usualSettings, type Webhook, type WebhookSettings } from "./webhook.ts";

/** An entry of a list that replaces the one before, with only the settings that it mentions. */
// The id is for a URL that is new: one that stays keeps its own.
export type ListedWebhook = Pick<Webhook, "id" | "url" | "name"> & Partial<WebhookSettings>;

/** A list as a client wants it, and what has to hold for it to be taken. */
export interface WantedList {
  readonly webhooks: readonly ListedWebhook[];
  /** How many the account may have. */
  readonly limit: number;
  /** What the list has to be before: one of these `listTag`s. @default any */
  readonly readAs?: readonly string[] | null;
}

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
      readonly throttled: readonly ChangedWebhook[];
      /** Those that stay and are no longer ordered. */
      readonly unordered: readonly number[];
    }
  | { readonly kind: "refused"; readonly error: DomainError };

/**
 * Tells lists apart: another one has another URL, name, order or setting somewhere. How deliveries have been going makes no
 * difference.
 */
export function listTag(webhooks: readonly Webhook[]): string {
  const told = webhooks.map((webhook) => {
    const { id, name, eventTypes, ordered, paused, rateLimit, maxConcurrency, sealedHeaders } = webhook;
    const headers = sealedHeaders && Buffer.from(sealedHeaders).toString("base64");
    return [id, name, eventTypes, ordered, paused, rateLimit, maxConcurrency, headers];
  });
  return Bun.hash.xxHash64(JSON.stringify(told)).toString(36);
}

/** What a new list does to the registered webhooks (rules, section 9). A URL that stays keeps its webhook. */
export function replaceWebhooks(
  { gone, webhooks }: Pick<TenantState, "gone" | "webhooks">,
  { webhooks: wanted, limit, readAs = null }: WantedList,
): WebhookListChange {
  if (gone) return { kind: "refused", error: accountGone() };
  if (readAs !== null && !readAs.includes(listTag(webhooks))) return { kind: "refused", error: listChanged() };
  if (wanted.length > limit) return { kind: "refused", error: tooManyWebhooks(wanted.length, limit) };
  const registered = new Map(webhooks.map((webhook) => [webhook.url, webhook]));
  const urls = new Set(wanted.map(({ url }) => url));
  const endsOrder = new Set(wanted.flatMap(({ url, ordered }) => (ordered === false ? [url] : [])));
  const leaving = webhooks.filter(({ url }) => !urls.has(url));
  const throttled: ChangedWebhook[] = [];
  return {
    kind: "replaced",
    list: wanted.map((entry) => {
      const { id: _, ...wishes } = entry;
      const before = registered.get(entry.url);
      if (!before) return { ...usualSettings, ...newStanding, ...entry };
      const stays = { ...before, ...wishes };
      if (!isDeliveredAlike(before, stays)) throttled.push({ before, after: stays });
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

/** RFC 9110, section 13.1.1: somebody else has replaced the list since it was read. */
export const listChanged = () =>
  new DomainError({
    kind: "precondition_failed",
    code: "webhooks_changed",
    message: "The webhooks have changed since they were read; read them again, and repeat the change.",
  });
