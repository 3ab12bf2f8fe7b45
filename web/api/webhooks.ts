import { call } from "./client.ts";
import type { SavedWebhook, Webhook } from "./types.ts";

export const readWebhooks = (signal?: AbortSignal) => call<Webhook[]>("/v1/tenants/webhooks", { signal });

/** Replaces the whole list. @returns what is registered from now on */
export async function saveWebhooks(entries: readonly SavedWebhook[]): Promise<Webhook[]> {
  await call<SavedWebhook[]>("/v1/tenants/webhooks", { method: "PUT", body: entries });
  return readWebhooks();
}

/** The name that the inbox gets when it becomes a webhook by one click. */
export const inboxName = "Inbox";
