import { ApiError, call } from "./client.ts";
import type { SavedSettings, SavedWebhook, Webhook } from "./types.ts";
import { toEntry } from "./webhook-entry.ts";

/** With all their settings. */
export const readWebhooks = (signal?: AbortSignal) =>
  call<Webhook[]>("/v1/tenants/webhooks", { query: { expand: true }, signal });

/**
 * Changes some settings of one webhook; what an entry does not name stays as it is. The list is read again first, because
 * it is replaced as a whole and somebody may have saved another one.
 *
 * @throws ApiError, which names fields by `entry`
 */
export async function saveSettings(id: string, change: Partial<SavedSettings>): Promise<Webhook[]> {
  const registered = await readWebhooks();
  if (!registered.some((webhook) => webhook.id === id)) {
    throw new ApiError("The webhook is not registered any more.", 404, "webhook_not_found", null);
  }
  const body = registered.map((webhook) => ({ ...toEntry(webhook), ...(webhook.id === id && change) }));
  try {
    await call<SavedWebhook[]>("/v1/tenants/webhooks", { method: "PUT", body });
  } catch (error) {
    throw error instanceof ApiError ? inEntry(error) : error;
  }
  return readWebhooks();
}

/** `[1].rate_limit` of the list is `rate_limit` of its entry. */
function inEntry({ message, status, code, retryAfterSeconds, broken }: ApiError): ApiError {
  const named = broken && { ...broken, field: broken.field.replace(/^\[\d+\]\.?/, "") };
  return new ApiError(message, status, code, retryAfterSeconds, named);
}

/** Re-enables a disabled webhook. */
export const enableWebhook = (id: string) => call(`/v1/tenants/webhooks/${id}/enable`, { method: "POST" });

/** Replaces the whole list. @returns what is registered now */
export async function saveWebhooks(entries: readonly SavedSettings[]): Promise<Webhook[]> {
  await call<SavedWebhook[]>("/v1/tenants/webhooks", { method: "PUT", body: entries });
  return readWebhooks();
}

/** The name that the inbox gets when one click makes it a webhook. */
export const inboxName = "Inbox";
