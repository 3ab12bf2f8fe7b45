import type { Replay, Webhook } from "../../api/types.ts";
import { chipsOf } from "../events/chips.ts";
import { everything, type Filter } from "../events/filter.ts";

/** The filter of a replay, in the terms of the event list. */
function listFilterOf({ filter }: Replay): Filter {
  const { webhook = "", type = "", code = "", status = "", from = "", to = "" } = filter ?? {};
  const span = from === "" && to === "" ? "" : "custom";
  return { ...everything, webhook, type, code, status: String(status), span, from, to };
}

/** Whether it may deliver to that webhook: it is narrowed to this one, or to none. */
export const mayReach = ({ filter }: Pick<Replay, "filter">, { id, url }: Pick<Webhook, "id" | "url">): boolean =>
  [undefined, id, url].includes(filter?.webhook);

/** In words. */
export const narrowedTo = (replay: Replay, webhooks: readonly Webhook[] | undefined): string =>
  chipsOf(listFilterOf(replay), webhooks)
    .map(({ text }) => text)
    .join(" · ");
