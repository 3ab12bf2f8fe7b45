import type { SavedWebhook, Webhook } from "./types.ts";

/**
 * A webhook as an entry of the list that is saved. Settings that an entry does not name stay as they are; the name, by
 * the specification, does not.
 */
export const toEntry = ({ url, name }: Pick<Webhook, "url" | "name">): SavedWebhook => ({ webhook_url: url, name });
