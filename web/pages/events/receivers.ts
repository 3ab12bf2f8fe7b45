import type { Webhook } from "../../api/types.ts";
import type { ListedRecord } from "./record.ts";

/** The webhooks that a replay may deliver to: it passes over a disabled one. */
export const receiversOf = (webhooks: readonly Webhook[]): Webhook[] =>
  webhooks.filter(({ state }) => state !== "disabled");

/**
 * URLs of the receivers for which some of these records are in that state. A record of a removed webhook stays, but a
 * replay sends nothing there.
 */
export const receiversIn = (
  state: "DELIVERED" | "FAILED",
  records: readonly Pick<ListedRecord, "state" | "targetWebhook">[],
  receivers: readonly Webhook[],
): string[] =>
  receivers
    .map(({ url }) => url)
    .filter((url) => records.some((record) => record.state === state && record.targetWebhook === url));
