import type { SavedWebhook, Webhook } from "./types.ts";

/** A webhook as a list of them is saved. Whoever saves one sends back what it does not edit, or the save takes it away. */
export const toEntry = ({ url, name }: Pick<Webhook, "url" | "name">): SavedWebhook => ({ webhook_url: url, name });
