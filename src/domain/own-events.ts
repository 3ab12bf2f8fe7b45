import { takes } from "./event-types.ts";
import { isEnabled, type Webhook } from "./webhook.ts";

/** What the program itself tells an account, as events (rules, section 14). */
export type OwnEventType =
  | "postrider.webhook.failing"
  | "postrider.webhook.disabled"
  | "postrider.webhook.enabled"
  | "postrider.delivery.exhausted"
  | "postrider.delivery.recovered";

/**
 * Whether a webhook gets an event of this type about another one: webhooks that name the type do, but never the one that
 * it is about, which would be told of its own failures by a delivery that fails too.
 */
export const isToldOf = (
  webhook: Pick<Webhook, "key" | "eventTypes" | "disabled">,
  type: OwnEventType,
  aboutKey: number,
): boolean => webhook.key !== aboutKey && isEnabled(webhook) && takes(webhook.eventTypes, type);

/** Only the host of its URL: the rest may hold a token, and another receiver gets this. */
export const ownPayload = (
  type: OwnEventType,
  { id, name, url }: Pick<Webhook, "id" | "name" | "url">,
  fields: Record<string, unknown>,
): Uint8Array =>
  new TextEncoder().encode(
    JSON.stringify({ event_type: type, webhook: { id, name, host: URL.parse(url)?.host ?? null }, ...fields }),
  );

/** Id of the webhook that an event with this payload is about; null: it cannot be read. */
export function aboutOf(payload: Uint8Array): string | null {
  try {
    const { webhook } = JSON.parse(new TextDecoder().decode(payload));
    return typeof webhook?.id === "string" ? webhook.id : null;
  } catch {
    return null;
  }
}

const beginning = new TextEncoder().encode('{"event_type":"postrider.');

/**
 * Whether a payload is one of these, judged by its first bytes. When the delivery of one fails, nobody is told: two
 * webhooks would keep telling each other forever.
 */
export const isOwnPayload = (payload: Uint8Array): boolean => beginning.every((byte, i) => payload[i] === byte);
