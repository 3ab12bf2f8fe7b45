import type { Webhook } from "../../api/types.ts";
import { mostUnasked } from "../../format/kept.ts";
import { count } from "../../format/number.ts";
import { webhookInWords } from "./chips.ts";
import { type Filter, fieldsOf, isChoosing, urlOf } from "./filter.ts";
import { isCalled, isEnabled, receiversIn } from "./receivers.ts";
import { deliveriesInWords, type Listed, type ListedRecord } from "./record.ts";

/** A replay of exactly what a list shows; one that may be wider asks first. */
export type ReplayThese = {
  /** The text of its button. */
  readonly text: string;
  /** What it takes, as part of a sentence. */
  readonly words: string;
  readonly mustAsk: boolean;
} & (
  | {
      readonly by: "selection";
      readonly kind: "failed" | "all";
      /** The filters of the replay and of its preview. */
      readonly fields: Readonly<Record<string, string | number>>;
    }
  /** One by one: no replay selects exactly what the list shows. */
  | {
      readonly by: "page";
      readonly records: readonly ListedRecord[];
      /** As written by `againInWords`. */
      readonly again: string;
      /** The others were accepted before one was not. */
      readonly isRest?: true;
    }
);

/** Of what failed: where a replay that names no webhook sends it. */
export const toUnacknowledged =
  "to every enabled webhook that has not acknowledged them, including those where they wait for a retry";

/** The registered webhook that every delivery of a list is of; undefined: there is none, or the list goes on. */
function onlyWebhookOf(
  { total, totalIsExact, records }: Pick<Listed, "total" | "totalIsExact" | "records">,
  webhooks: readonly Webhook[],
): Webhook | undefined {
  const url = records[0]?.targetWebhook;
  const isWhole = totalIsExact && total <= records.length;
  if (!isWhole || records.some(({ targetWebhook }) => targetWebhook !== url)) return undefined;
  return webhooks.find((webhook) => webhook.url === url);
}

/** Whether a replay can select what the filter does, so that its events go to more webhooks than those listed. */
const isSelectable = ({ q, replay, state }: Filter): boolean =>
  q === "" && replay === "" && (state === "" || state === "failed");

/**
 * The disabled webhook that keeps a list from being replayed: its deliveries would go to this one alone, or none is enabled.
 * Each goes where it went before if it is replayed one by one, or for a reason (rules, section 10).
 */
export function disabledFor(
  filter: Filter,
  listed: Pick<Listed, "total" | "totalIsExact" | "records">,
  webhooks: readonly Webhook[],
): Webhook | undefined {
  const { webhook, code, status } = filter;
  const goBack = !isSelectable(filter) || `${code}${status}` !== "";
  const ofList = goBack ? onlyWebhookOf(listed, webhooks) : undefined;
  const only = webhook === "" ? ofList : webhooks.find(isCalled(webhook));
  const first = webhooks.some(isEnabled) ? undefined : webhooks[0];
  return [only, first].find((one) => one && !isEnabled(one));
}

/**
 * How the deliveries of a list are replayed. For a search, an earlier replay, states that no replay selects, and a
 * webhook that is no longer registered, only the visible page is replayed.
 *
 * @param webhooks the registered ones; undefined: not known yet
 * @returns null: nothing is listed, or nothing of it can go anywhere
 */
export function replayTheseOf(
  filter: Filter,
  listed: Pick<Listed, "total" | "totalIsExact" | "readAt" | "held" | "records">,
  webhooks: readonly Webhook[] | undefined,
): ReplayThese | null {
  if (webhooks === undefined || listed.records.length === 0 || disabledFor(filter, listed, webhooks)) return null;
  const { state, webhook } = filter;
  const isReached = (wanted: string) => webhooks.filter(isEnabled).some(isCalled(wanted));
  if (isSelectable(filter) && (webhook === "" || isReached(webhook))) {
    const { status, ...given } = fieldsOf(filter, listed.readAt, listed.held);
    const { total, totalIsExact } = listed;
    const isAnyErased = listed.records.some(({ payloadErased }) => payloadErased);
    const kind = state === "failed" ? "failed" : "all";
    // What failed for one webhook may wait for a retry at another, and is sent there as well unless the replay names one.
    const mayGoWider = kind === "failed" && webhook === "" && webhooks.length > 1;
    const listedOnly = mayGoWider ? onlyWebhookOf(listed, webhooks) : undefined;
    // What failed for one that is disabled goes to the others.
    const only = listedOnly && isEnabled(listedOnly) ? listedOnly : undefined;
    const fields = {
      ...given,
      ...(status !== undefined && { status: Number(status) }),
      ...(only && { webhook: only.id }),
    };
    // What is on other pages is not known.
    const isAnyAgain =
      includesDelivered(kind, fields) &&
      (total > listed.records.length || againInWords(listed.records, webhooks) !== "");
    // The whole history is seldom what the user means to send again.
    const isWider = mayGoWider && only === undefined;
    // The webhook also gets what failed so for one that is gone, which is not in its list.
    const mayStandIn = "webhook" in fields && ("code" in fields || "status" in fields);
    const isUnsure = isAnyErased || isAnyAgain || isWider || mayStandIn || eventsIn(listed, fields) === null;
    const mustAsk = total > mostUnasked || !totalIsExact || !isChoosing(filter) || isUnsure;
    const many = totalIsExact ? "" : "more than ";
    return {
      by: "selection",
      kind,
      fields,
      text: `${total === 1 ? "Replay this one" : `Replay these ${many}${count(total)}`}${mustAsk ? " …" : ""}`,
      words: `${many}${deliveriesInWords(total)}`,
      mustAsk,
    };
  }
  const records = listed.records.filter(
    ({ targetWebhook, payloadErased }) => !payloadErased && (targetWebhook === "" || isReached(targetWebhook)),
  );
  const n = records.length;
  if (n === 0 || webhooks.length === 0) return null;
  const isAll = listed.totalIsExact && n === listed.total;
  const these = n === 1 ? "this one" : `these ${n}`;
  const again = againInWords(records, webhooks);
  const mustAsk = again !== "";
  const onPage = listed.records.length;
  // Payloads were erased, or webhooks removed or disabled.
  const some = n === onPage ? `the ${n}` : `${n} of the ${onPage}`;
  const text = `Replay ${isAll ? these : `${some} on this page`}${mustAsk ? " …" : ""}`;
  return { by: "page", records, again, text, words: deliveriesInWords(n), mustAsk };
}

/**
 * How many events a list is of, which may be fewer than its deliveries: one for each webhook. Null: not known.
 *
 * @param webhook the only one that the list is of
 */
export function eventsIn(
  { total, records }: Pick<Listed, "total" | "records">,
  { webhook }: Readonly<Record<string, string | number>>,
): number | null {
  if (total <= records.length) return new Set(records.map(({ eventId }) => eventId)).size;
  return webhook === undefined ? null : total;
}

/** The filter of a list, narrowed to what of it is replayed. */
export const takenBy = (these: ReplayThese, filter: Filter): Filter =>
  these.by === "selection" ? { ...filter, webhook: String(these.fields.webhook ?? "") } : filter;

/** What is left of a page, where not all of it was accepted: nothing is replayed twice by trying again. */
export const restOf = (
  these: Extract<ReplayThese, { by: "page" }>,
  left: readonly ListedRecord[],
  webhooks: readonly Webhook[],
): ReplayThese => ({
  ...these,
  records: left,
  words: deliveriesInWords(left.length),
  again: againInWords(left, webhooks),
  isRest: true,
});

/** Whether a replay may send what was acknowledged: a reason selects only what failed, or waits after it. */
export const includesDelivered = (
  kind: "failed" | "all",
  { code, status }: Readonly<Record<string, string | number>>,
): boolean => kind === "all" && code === undefined && status === undefined;

/** Which webhooks would get some of these deliveries a second time, as a sentence; "": none. */
export function againInWords(records: readonly ListedRecord[], webhooks: readonly Webhook[]): string {
  const urls = receiversIn("DELIVERED", records, webhooks);
  if (urls.length === 0) return "";
  const names = namesInWords(urls.map((url) => webhookInWords(url, webhooks)));
  if (records.every(({ eventId }) => eventId === records[0]?.eventId)) {
    return `${names} acknowledged the event already, and would get it again.`;
  }
  const n = records.filter((record) => receiversIn("DELIVERED", [record], webhooks).length > 0).length;
  if (n === 1) return `1 of them was acknowledged already, and ${names} would get it again.`;
  return `${n === records.length ? "All" : count(n)} of them were acknowledged already, and ${names} would get them again.`;
}

/** Where the events of a selection go, worded as the end of a sentence. @param webhooks the registered ones */
export function targetInWords(kind: "failed" | "all", filter: Filter, webhooks: readonly Webhook[]): string {
  if (filter.webhook !== "") return `to ${webhookInWords(filter.webhook, webhooks)}`;
  const names = webhooks.filter(isEnabled).map(({ id }) => webhookInWords(id, webhooks));
  // Even if only one is registered by now: what failed for one that was removed does not go to it.
  if (`${filter.code}${filter.status}` !== "") {
    return `to the webhooks where they failed like this${kind === "failed" ? ", or wait for a retry after it" : ""}`;
  }
  // The enabled one may have acknowledged what failed for another.
  if (names.length === 1 && (kind === "all" || webhooks.length === 1)) return `to ${names[0]}`;
  if (kind === "failed") return toUnacknowledged;
  if (names.length > 3) return `to all ${names.length} webhooks`;
  return `to ${namesInWords(names)}`;
}

/** "Shop", "Shop and Audit", "Shop, Audit and Billing". */
export const namesInWords = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** What was listed when it was replayed, whatever became of it. */
export function urlOfReplayed(filter: Filter, { readAt, held }: Pick<Listed, "readAt" | "held">): string {
  const { from = "", to = "" } = fieldsOf(filter, readAt, held);
  const isBound = from !== "" || to !== "";
  const whatever = { ...filter, state: "", code: "", status: "", page: 1, until: "" } as const;
  return urlOf({ ...whatever, span: isBound ? "custom" : "", from, to });
}
