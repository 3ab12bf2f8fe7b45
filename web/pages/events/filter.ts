/** What the list of events shows, as it stands in the URL: whoever reloads or shares it sees the same. */
export interface Filter {
  readonly state: StateChoice;
  /** Id or URL of a webhook; "": any. */
  readonly webhook: string;
  readonly span: Span;
  /** ISO 8601, of the span `custom`; "": open. */
  readonly from: string;
  readonly to: string;
  /** From 1. */
  readonly page: number;
  /**
   * The time of the newest record of the first page. The API pages by offset, so while events arrive every page shifts;
   * up to a fixed time it stays.
   */
  readonly until: string;
}

export type StateChoice = "" | "delivered" | "waiting" | "failed";
export type Span = "" | "1h" | "24h" | "7d" | "custom";

export const pageSize = 50;

const hourMs = 3_600_000;
const spanMs = { "1h": hourMs, "24h": 24 * hourMs, "7d": 7 * 24 * hourMs } as const;

const stateOf: Readonly<Record<string, StateChoice>> = {
  delivered: "delivered",
  waiting: "waiting",
  pending: "waiting",
  failed: "failed",
};

export const recordStates = { delivered: "DELIVERED", waiting: "PENDING", failed: "FAILED" } as const;

/** Reads the query of the page. What it does not understand it leaves out. */
export function readFilter(query: Readonly<Record<string, string>>): Filter {
  const from = isoOrNothing(query.from);
  const to = isoOrNothing(query.to);
  const span = query.time !== undefined && query.time in spanMs ? (query.time as keyof typeof spanMs) : null;
  const page = Number(query.page);
  return {
    state: stateOf[query.state?.toLowerCase() ?? ""] ?? "",
    webhook: query.webhook ?? "",
    span: span ?? (from === "" && to === "" ? "" : "custom"),
    from: span === null ? from : "",
    to: span === null ? to : "",
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
    until: isoOrNothing(query.until),
  };
}

/** The page's URL of a filter. */
export function urlOf({ state, webhook, span, from, to, page, until }: Filter): string {
  const query = new URLSearchParams();
  if (state !== "") query.set("state", state);
  if (webhook !== "") query.set("webhook", webhook);
  if (span !== "" && span !== "custom") query.set("time", span);
  if (span === "custom" && from !== "") query.set("from", from);
  if (span === "custom" && to !== "") query.set("to", to);
  if (page > 1) query.set("page", String(page));
  if (until !== "") query.set("until", until);
  return query.size === 0 ? "/events" : `/events?${query}`;
}

/** Another choice begins at its first page, with what is newest now. */
export const choose = (filter: Filter, choice: Partial<Filter>): Filter => ({
  ...filter,
  page: 1,
  until: "",
  ...choice,
});

export const isChoosing = ({ state, webhook, span }: Filter): boolean => state !== "" || webhook !== "" || span !== "";

/** The times that the filter's span means now; "": open. */
export function timesOf({ span, from, to }: Filter, nowMs: number): { from: string; to: string } {
  if (span === "" || span === "custom") return { from, to };
  return { from: new Date(nowMs - spanMs[span]).toISOString(), to: "" };
}

/** @param held shows nothing that is newer than this; "": up to now */
export function requestOf(
  filter: Filter,
  nowMs: number,
  held: string,
): { path: string; query: Record<string, string | number | boolean> } {
  const { from, to } = timesOf(filter, nowMs);
  const end = [to, filter.until, held].filter((time) => time !== "").sort()[0];
  return {
    path: filter.state === "" ? "/v1/events" : `/v1/events/state/${recordStates[filter.state]}`,
    query: {
      page: filter.page - 1,
      size: pageSize,
      payload: false,
      ...(filter.webhook !== "" && { webhook: filter.webhook }),
      // A page of the last hour may have been open for longer than that.
      ...(from !== "" && { from: end !== undefined && end < from ? end : from }),
      ...(end !== undefined && { to: end }),
    },
  };
}

/** Whether events that arrive now can be among what is shown. */
export const canGrow = ({ page, to, until }: Filter, nowMs: number): boolean =>
  page === 1 && until === "" && (to === "" || Date.parse(to) >= nowMs);

/** The replay page with the same choice as far as there is one. A replay of failed events covers them all. */
export function replayUrlOf(filter: Filter, nowMs: number): string {
  if (filter.state === "failed") return "/replays?kind=failed";
  const { from, to } = timesOf(filter, nowMs);
  if (from === "" && to === "") return "/replays";
  const times = { from: from || new Date(0).toISOString(), to: to || new Date(nowMs).toISOString() };
  return `/replays?${new URLSearchParams({ kind: "timeline", ...times })}`;
}

const isoPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/;

/** In one form, so that they compare as text. */
function isoOrNothing(text: string | undefined): string {
  if (text === undefined || !isoPattern.test(text)) return "";
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? "" : new Date(ms).toISOString();
}
