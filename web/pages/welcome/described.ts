import type { EventRecord } from "../../api/types.ts";
import { withoutUrl } from "../../format/outcome.ts";
import { shortenUrl, withoutQuery } from "../../format/shorten.ts";

const longestUrl = 60;

/** What became of one delivery, after the word for its state: its webhook is named once, and briefly. */
export function describedOf(
  { targetWebhook, state, errorReason }: Pick<EventRecord, "targetWebhook" | "state" | "errorReason">,
  inboxUrl: string,
): string {
  const webhook = targetWebhook === inboxUrl ? "your inbox" : shortenUrl(targetWebhook, longestUrl);
  if (state === "FAILED") return withoutQuery(withoutUrl(errorReason ?? "", targetWebhook, webhook));
  if (state === "DELIVERED") return `to ${webhook}`;
  const soFar = errorReason === null ? "" : `, after: ${withoutQuery(withoutUrl(errorReason, targetWebhook))}`;
  return `for ${webhook}${soFar}`;
}
