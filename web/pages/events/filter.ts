import { isFailureCode } from "../../format/failure.ts";
import { isoOrNothing } from "../../format/time.ts";

/** What the list of events shows, as encoded in the URL: reloading or sharing it shows the same. */
export interface Filter {
  readonly state: StateChoice;
  /** The event's type, exact; "": any. */
  readonly type: string;
  /** Id or URL of a webhook; "": any. */
  readonly webhook: string;
  /** Why it failed, in terms of `errorCode` and `statusCode`; "": any outcome. */
  readonly code: string;
  readonly status: string;
  /** Text in the payload, or part of the id. */
  readonly q: string;
  /** Id of the replay that last sent them again; "": any, or none. */
  readonly replay: string;
  readonly span: Span;
  /** ISO 8601, for the span `custom`; "": open. */
  readonly from: string;
  readonly to: string;
  /** From 1. */
  readonly page: number;
  /**
   * The time of the newest record on the first page. The API pages by offset, so every page shifts while events arrive;
   * up to a fixed time it stays put.
   */
  readonly until: string;
}

export type StateChoice = "" | "delivered" | "waiting" | "failed" | "skipped";
export type Span = "" | "10m" | "1h" | "24h" | "7d" | "custom";

export const everything: Filter = {
  ...{ state: "", type: "", webhook: "", code: "", status: "", q: "", replay: "" },
  ...{ span: "", from: "", to: "", page: 1, until: "" },
};

export const pageSize = 50;
/** The API accepts no longer search text. */
export const longestSearch = 200;

const hourMs = 3_600_000;
const spanMs = { "10m": hourMs / 6, "1h": hourMs, "24h": 24 * hourMs, "7d": 7 * 24 * hourMs } as const;

const recordStates = {
  delivered: "DELIVERED",
  waiting: "PENDING",
  failed: "FAILED",
  skipped: "SKIPPED",
} as const;

/** By the page's words as well as the API's. */
const stateOf = new Map<string, StateChoice>(
  Object.entries(recordStates).flatMap(([choice, state]) => [
    [choice, choice as StateChoice],
    [state.toLowerCase(), choice as StateChoice],
  ]),
);

/** Reads the query of the page, without what `droppedOf` names. */
export function readFilter(query: Readonly<Record<string, string>>): Filter {
  const from = isoOrNothing(query.from);
  const to = isoOrNothing(query.to);
  const span = Object.hasOwn(spanMs, query.time ?? "") ? (query.time as keyof typeof spanMs) : null;
  const page = Number(query.page);
  const status = isStatus(query.status ?? "") ? (query.status ?? "") : "";
  const code = isFailureCode(query.code ?? "") ? (query.code ?? "") : "";
  const q = (query.q ?? "").trim();
  return {
    state: stateOf.get(query.state?.toLowerCase() ?? "") ?? "",
    type: query.type ?? "",
    webhook: query.webhook ?? "",
    // Only a response has a status.
    code: code === "http_status" && status !== "" ? "" : code,
    status,
    // Left out as a whole: the start of it would find more than was meant.
    q: q.length > longestSearch ? "" : q,
    replay: query.replay ?? "",
    span: span ?? (from === "" && to === "" ? "" : "custom"),
    from: span === null ? from : "",
    to: span === null ? to : "",
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
    until: isoOrNothing(query.until),
  };
}

/** What the query asks for and the filter lacks, as it is in the URL: the list is wider than somebody meant it to be. */
export function droppedOf(query: Readonly<Record<string, string>>): string[] {
  const kept = new URLSearchParams(urlOf(readFilter(query)).split("?")[1]);
  const isDropped = (name: string, value: string) =>
    value.trim() !== "" &&
    !kept.has(name) &&
    // A page narrows nothing, and a status says more than the code it comes with.
    name !== "page" &&
    !(name === "code" && isFailureCode(value));
  return Object.entries(query).flatMap(([name, value]) => (isDropped(name, value) ? [`${name}=${value}`] : []));
}

export const isStatus = (text: string): boolean => /^[1-9]\d\d$/.test(text);

/** The page's URL for a filter. */
export function urlOf(filter: Partial<Filter>): string {
  const { span, from, to, page, until, ...rest } = { ...everything, ...filter };
  const query = new URLSearchParams();
  for (const name of ["state", "type", "webhook", "code", "status", "q", "replay"] as const) {
    if (rest[name] !== "") query.set(name, rest[name]);
  }
  if (span !== "" && span !== "custom") query.set("time", span);
  if (span === "custom" && from !== "") query.set("from", from);
  if (span === "custom" && to !== "") query.set("to", to);
  if (page > 1) query.set("page", String(page));
  if (until !== "") query.set("until", until);
  return query.size === 0 ? "/events" : `/events?${query}`;
}

/** A changed choice starts at the first page, with what is newest now. */
export const choose = (filter: Filter, choice: Partial<Filter>): Filter => ({
  ...filter,
  page: 1,
  until: "",
  ...choice,
});

export const isChoosing = (filter: Filter): boolean => urlOf({ ...filter, page: 1, until: "" }) !== "/events";

/** The times that the filter's span covers now; "": open. */
function timesOf({ span, from, to }: Filter, nowMs: number): { from: string; to: string } {
  if (span === "" || span === "custom") return { from, to };
  return { from: new Date(nowMs - spanMs[span]).toISOString(), to: "" };
}

/**
 * What the list shows, in the API's terms and without the state: fields for its query, and for a replay.
 *
 * @param held for the first page: the time up to which it is shown, so that no row moves; "": what is newest now
 */
export function fieldsOf(filter: Filter, nowMs: number, held: string): Record<string, string> {
  const { from, to } = timesOf(filter, nowMs);
  const end = [to, filter.until, held].filter((time) => time !== "").sort()[0];
  const { type, webhook, code, status } = filter;
  return {
    ...(type !== "" && { type }),
    ...(webhook !== "" && { webhook }),
    ...(code !== "" && { code }),
    ...(status !== "" && { status }),
    // A page showing the last hour may have been open for longer than that.
    ...(from !== "" && { from: end !== undefined && end < from ? end : from }),
    ...(end !== undefined && { to: end }),
  };
}

/** The API request for a page of the list. */
export function requestOf(
  filter: Filter,
  nowMs: number,
  held: string,
): { path: string; query: Record<string, string | number | boolean> } {
  return {
    path: filter.state === "" ? "/v1/events" : `/v1/events/state/${recordStates[filter.state]}`,
    query: {
      page: filter.page - 1,
      size: pageSize,
      payload: "start",
      ...(filter.q !== "" && { q: filter.q }),
      ...(filter.replay !== "" && { replay: filter.replay }),
      ...fieldsOf(filter, nowMs, held),
    },
  };
}

/** Whether events arriving now can belong to what is shown. */
export const canGrow = ({ page, to, until }: Filter, nowMs: number): boolean =>
  page === 1 && until === "" && (to === "" || Date.parse(to) >= nowMs);

/**
 * Whether the stream's message about a delivery is not enough to tell if it belongs to the list: then the list is
 * queried.
 */
export const isAsked = ({ type, code, status, replay }: Filter): boolean => `${type}${code}${status}${replay}` !== "";
