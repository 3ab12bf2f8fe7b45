import { type AddressPolicy, literalInUrl } from "../delivery/network/address.ts";
import type { HeaderVault } from "../delivery/own-headers.ts";
import { invalidField } from "../domain/errors.ts";
import { checkPatterns } from "../domain/event-types.ts";
import { usualSettings, type Webhook } from "../domain/webhook.ts";
import { checkOwnHeaders, isMask, type OwnHeaders, unmask } from "../domain/webhook-headers.ts";
import type { ListedWebhook } from "../domain/webhook-list.ts";
import { newId } from "../lib/id.ts";
import type { WebhookEntry } from "./model.ts";

/** What an account may register: also its own inbox, but only as that exact string (rules, section 9). */
export const allowInbox = (policy: UrlPolicy, inboxUrl: string): UrlPolicy => ({
  checkUrl: (input) => (input === inboxUrl ? { ok: true, url: new URL(input) } : policy.checkUrl(input)),
  learn: policy.learn,
});

/** The part of the address policy that checks what is saved. */
export type UrlPolicy = Pick<AddressPolicy, "checkUrl" | "learn">;

/** A webhook as requested: its headers are not sealed yet, and their values may be masks. */
export type CheckedWebhook = Omit<ListedWebhook, "sealedHeaders"> & { readonly headers?: OwnHeaders | null };

export interface ListConditions {
  policy: UrlPolicy;
  /** The name of the list in the request; empty when the body is the list. */
  field: "webhooks" | "";
  /** How many webhooks the account may have. */
  limit: number;
  /** The most concurrent attempts to one webhook, for any account. */
  webhookConcurrency: number;
}

/**
 * Checks a whole list of webhooks before any of it is saved (rules, sections 9 and 14).
 *
 * @throws invalid for a bad URL or pattern, `duplicate_webhook`, `too_many_webhooks`
 */
export async function checkWebhooks(
  entries: readonly WebhookEntry[],
  { policy, field, limit, webhookConcurrency }: ListConditions,
): Promise<CheckedWebhook[]> {
  // Comes first: a body has room for two thousand URLs, and checking those takes longer than anything else a request can ask
  // for.
  if (entries.length > limit) throw tooManyEntries(field, limit);
  await policy.learn(entries.flatMap(({ webhook_url }) => literalInUrl(webhook_url) ?? []));
  const indexOf = new Map<string, number>();
  entries.forEach(({ webhook_url }, index) => {
    const subject = `${field}[${index}].webhook_url`;
    const verdict = policy.checkUrl(webhook_url);
    if (!verdict.ok) throw invalidField(subject, verdict.message, "invalid_webhook_url");
    // Compared as the parser writes them: two spellings of one URL would get each event twice.
    const first = indexOf.get(verdict.url.href);
    if (first !== undefined) {
      throw invalidField(subject, `must not be the same URL as ${field}[${first}].webhook_url`, "duplicate_webhook");
    }
    indexOf.set(verdict.url.href, index);
  });
  entries.forEach(({ event_types, max_concurrency, headers }, index) => {
    if (headers) checkOwnHeaders(Object.entries(headers), `${field}[${index}].headers`);
    if (event_types) checkPatterns(event_types, `${field}[${index}].event_types`);
    if (max_concurrency && max_concurrency > webhookConcurrency) {
      const rule = `must be at most ${webhookConcurrency}, which this server sends to one webhook at once`;
      throw invalidField(`${field}[${index}].max_concurrency`, rule);
    }
  });
  return entries.map(({ webhook_url, name, event_types, ordered, paused, rate_limit, max_concurrency, headers }) => ({
    ...{ id: newId("wh"), url: webhook_url, name },
    ...(event_types !== undefined && { eventTypes: event_types }),
    ...(ordered !== undefined && { ordered: ordered ?? usualSettings.ordered }),
    ...(rate_limit !== undefined && { rateLimit: rate_limit }),
    ...(max_concurrency !== undefined && { maxConcurrency: max_concurrency }),
    ...(headers !== undefined && { headers: headers && Object.entries(headers) }),
    ...(paused !== undefined && { paused: paused ?? usualSettings.paused }),
  }));
}

export interface Sealing {
  headerVault: HeaderVault;
  tenantId: string;
  field: "webhooks" | "";
  /** The registered webhooks, whose header values the masks may stand for. */
  stored: readonly Webhook[];
}

/** Whether the stored values are needed to resolve the request. */
export const hasMasks = (webhooks: readonly CheckedWebhook[]): boolean =>
  webhooks.some(({ headers }) => headers?.some(([, value]) => isMask(value)));

/**
 * Turns requested webhooks into what is stored.
 * @throws invalid `invalid_header` for a mask that does not match any stored value, or for too much behind the masks
 */
export function sealHeaders(
  webhooks: readonly CheckedWebhook[],
  { headerVault, tenantId, field, stored }: Sealing,
): ListedWebhook[] {
  const sealedOf = new Map(stored.map(({ url, sealedHeaders }) => [url, sealedHeaders]));
  return webhooks.map(({ headers, ...webhook }, index): ListedWebhook => {
    if (headers === undefined) return webhook;
    if (headers === null) return { ...webhook, sealedHeaders: null };
    const known = headers.some(([, value]) => isMask(value)) ? (sealedOf.get(webhook.url) ?? null) : null;
    const full = unmask(headers, headerVault.open(tenantId, known), `${field}[${index}].headers`);
    return full === "same" ? webhook : { ...webhook, sealedHeaders: headerVault.seal(tenantId, full) };
  });
}

const tooManyEntries = (field: "webhooks" | "", limit: number) =>
  invalidField(
    field,
    `must have at most ${limit} ${limit === 1 ? "entry" : "entries"} on this account; remove some or ask for a higher limit`,
    "too_many_webhooks",
  );
