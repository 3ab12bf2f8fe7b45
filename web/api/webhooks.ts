import { ApiError, call, callForTagged } from "./client.ts";
import type { SavedSettings, Webhook } from "./types.ts";
import { toEntry } from "./webhook-entry.ts";

/** With all their settings. */
export const readWebhooks = (signal?: AbortSignal) =>
  call<Webhook[]>("/v1/tenants/webhooks", { query: { expand: true }, signal });

/** How often a change is made again to a list that somebody else has changed meanwhile. */
const mostTries = 5;

/**
 * Changes the list, which the server replaces as a whole: if somebody else saves another one at the same moment, the change is
 * made to that one.
 * @param change from what is registered to the entries of the new list
 * @returns what is registered now
 * @throws ApiError
 */
export async function changeWebhooks(
  change: (registered: readonly Webhook[]) => readonly SavedSettings[],
): Promise<Webhook[]> {
  for (let tries = 1; ; tries++) {
    const { value, tag } = await callForTagged<Webhook[]>("/v1/tenants/webhooks", { query: { expand: true } });
    try {
      await call("/v1/tenants/webhooks", { method: "PUT", body: change(value), ifMatch: tag });
    } catch (error) {
      if (error instanceof ApiError && error.status === 412 && tries < mostTries) continue;
      throw error;
    }
    return readWebhooks();
  }
}

/**
 * Changes some settings of one webhook; what an entry does not name stays as it is.
 * @throws ApiError, which names fields by `entry`
 */
export async function saveSettings(id: string, settings: Partial<SavedSettings>): Promise<Webhook[]> {
  try {
    return await changeWebhooks((registered) => {
      if (registered.some((webhook) => webhook.id === id)) {
        return registered.map((webhook) => ({ ...toEntry(webhook), ...(webhook.id === id && settings) }));
      }
      throw new ApiError("The webhook is not registered any more.", 404, "webhook_not_found", null);
    });
  } catch (error) {
    throw error instanceof ApiError ? inEntry(error) : error;
  }
}

/** `[1].rate_limit` of the list is `rate_limit` of its entry. */
function inEntry({ message, status, code, retryAfterSeconds, broken }: ApiError): ApiError {
  const named = broken && { ...broken, field: broken.field.replace(/^\[\d+\]\.?/, "") };
  return new ApiError(message, status, code, retryAfterSeconds, named);
}

/** Re-enables a disabled webhook. */
export const enableWebhook = (id: string) => call(`/v1/tenants/webhooks/${id}/enable`, { method: "POST" });

/** The name that the inbox gets when one click makes it a webhook. */
export const inboxName = "Inbox";

/** Makes the inbox the first webhook; does nothing if somebody has just registered another one. @returns what is registered now */
export const takeInbox = (url: string): Promise<Webhook[]> =>
  changeWebhooks((now) => (now.length > 0 ? now : [{ url, name: inboxName }]).map(toEntry));
