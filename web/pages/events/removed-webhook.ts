import type { Webhook } from "../../api/types.ts";
import { hostOf } from "../../format/shorten.ts";
import { type Filter, urlOf } from "./filter.ts";
import { isCalled } from "./receivers.ts";
import type { ListedRecord } from "./record.ts";

type Records = readonly Pick<ListedRecord, "targetWebhook" | "state">[];

/** The webhooks to choose from, with a chosen one that was removed: its records still have its URL. */
export function withRemoved(
  webhooks: readonly Webhook[] | undefined,
  chosen: string,
  records: Records,
): readonly Webhook[] | undefined {
  const url = records[0]?.targetWebhook;
  if (webhooks === undefined || chosen === "" || !url || webhooks.some(isCalled(chosen))) return webhooks;
  return [...webhooks, { id: chosen, url, name: `${hostOf(url)}, removed` }];
}

/**
 * Where what failed for a removed webhook can be replayed from: a replay to it alone has nowhere to go.
 *
 * @returns null: the webhook is registered or not known, or nothing listed has failed
 */
export function replayableUrl(
  filter: Filter,
  records: Records,
  webhooks: readonly Webhook[] | undefined,
): string | null {
  if (webhooks === undefined || filter.webhook === "" || webhooks.some(isCalled(filter.webhook))) return null;
  if (!records.some(({ state }) => state === "FAILED")) return null;
  return urlOf({ ...filter, webhook: "", state: "failed", page: 1, until: "" });
}
