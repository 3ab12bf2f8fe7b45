import { type AddressPolicy, literalInUrl } from "../delivery/network/address.ts";
import { invalidField } from "../domain/errors.ts";
import { checkPatterns } from "../domain/event-types.ts";
import { usualSettings } from "../domain/webhook.ts";
import type { ListedWebhook } from "../domain/webhook-list.ts";
import { newId } from "../lib/id.ts";
import type { WebhookEntry } from "./model.ts";

/** What an account may register: its own inbox too, exactly as that one whole string (rules, section 9). */
export const allowInbox = (policy: UrlPolicy, inboxUrl: string): UrlPolicy => ({
  checkUrl: (input) => (input === inboxUrl ? { ok: true, url: new URL(input) } : policy.checkUrl(input)),
  learn: policy.learn,
});

/** The part of the address policy that judges what is saved. */
export type UrlPolicy = Pick<AddressPolicy, "checkUrl" | "learn">;

export interface ListConditions {
  policy: UrlPolicy;
  /** The name of the list in the request; empty when the body is the list. */
  field: "webhooks" | "";
  /** Webhooks that the plan allows. */
  limit: number;
  /** Most attempts at once to one webhook, of any account. */
  webhookConcurrency: number;
}

/**
 * Judges a whole list of webhooks before anything of it is saved (rules, sections 9 and 14).
 *
 * @throws invalid for a bad URL or pattern, `duplicate_webhook`, `too_many_webhooks`
 */
export async function checkWebhooks(
  entries: readonly WebhookEntry[],
  { policy, field, limit, webhookConcurrency }: ListConditions,
): Promise<ListedWebhook[]> {
  // First: a body has room for two thousand URLs, whose judgement takes longer than anything else that a request asks for.
  if (entries.length > limit) throw tooManyEntries(field, limit);
  await policy.learn(entries.flatMap(({ webhook_url }) => literalInUrl(webhook_url) ?? []));
  const indexOf = new Map<string, number>();
  entries.forEach(({ webhook_url }, index) => {
    const subject = `${field}[${index}].webhook_url`;
    const verdict = policy.checkUrl(webhook_url);
    if (!verdict.ok) throw invalidField(subject, verdict.message, "invalid_webhook_url");
    // As the parser writes it: two spellings of one URL would get each event twice.
    const first = indexOf.get(verdict.url.href);
    if (first !== undefined) {
      throw invalidField(subject, `must not be the same URL as ${field}[${first}].webhook_url`, "duplicate_webhook");
    }
    indexOf.set(verdict.url.href, index);
  });
  entries.forEach(({ event_types, max_concurrency }, index) => {
    if (event_types) checkPatterns(event_types, `${field}[${index}].event_types`);
    if (max_concurrency && max_concurrency > webhookConcurrency) {
      const rule = `must be at most ${webhookConcurrency}, which this server sends to one webhook at once`;
      throw invalidField(`${field}[${index}].max_concurrency`, rule);
    }
  });
  return entries.map(({ webhook_url, name, event_types, paused, rate_limit, max_concurrency }) => ({
    ...{ id: newId("wh"), url: webhook_url, name },
    ...(event_types !== undefined && { eventTypes: event_types }),
    ...(rate_limit !== undefined && { rateLimit: rate_limit }),
    ...(max_concurrency !== undefined && { maxConcurrency: max_concurrency }),
    ...(paused !== undefined && { paused: paused ?? usualSettings.paused }),
  }));
}

const tooManyEntries = (field: "webhooks" | "", limit: number) =>
  invalidField(
    field,
    `must have at most ${limit} ${limit === 1 ? "entry" : "entries"} on this plan; remove some or upgrade the account`,
    "too_many_webhooks",
  );
