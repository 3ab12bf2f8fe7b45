import type { SavedWebhook, Webhook } from "./types.ts";

/**
 * A webhook as a list of them is saved. A setting that it does not name stays as it is; the name, as the specification has
 * it, does not.
 */
export const toEntry = ({ url, name }: Pick<Webhook, "url" | "name">): SavedWebhook => ({ webhook_url: url, name });
