import type { SavedSettings, Webhook } from "../../api/types.ts";

/** The settings of a webhook as they are typed. */
export interface Draft {
  readonly name: string;
  /** One pattern per line; "": every event. */
  readonly eventTypes: string;
  /** "": none. */
  readonly rateLimit: string;
  readonly maxConcurrency: string;
  readonly ordered: boolean;
  /** "Name: value" on each line; a saved value is shown as its mask. */
  readonly headers: string;
}

/** Of what was typed, only the settings that were touched: the others stay what is registered, whoever changes that. */
export type Edits = Partial<Draft>;

/** The edits that differ from what is registered, or from those that have just been saved. */
export const editsBeyond = (edits: Edits, known: Edits): Edits =>
  Object.fromEntries(Object.entries(edits).filter(([name, typed]) => typed !== known[name as keyof Draft]));

export const toDraft = ({ name, event_types, rate_limit, max_concurrency, ordered, headers }: Webhook): Draft => ({
  name,
  eventTypes: (event_types ?? []).join("\n"),
  rateLimit: String(rate_limit ?? ""),
  maxConcurrency: String(max_concurrency ?? ""),
  ordered: ordered ?? false,
  headers: Object.entries(headers ?? {})
    .map(([header, value]) => `${header}: ${value}`)
    .join("\n"),
});

/** As they appear in the lines; one without a colon has no value, so that the server reports it. */
function headersOf(text: string): [name: string, value: string][] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => {
    const [name = "", ...value] = line.split(":");
    return [name.trim(), value.join(":").trim()];
  });
}

/** What the server could not detect: of two headers with the same name, it would be sent only one. */
export function wrongHeaders({ headers }: Draft): string | null {
  const names = headersOf(headers).map(([name]) => name.toLowerCase());
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  return twice === undefined ? null : `“${twice}” is listed twice.`;
}

const patternsOf = (text: string): string[] => text.split(/[\s,]+/).filter((pattern) => pattern !== "");

/** Empty means no limit; anything that is not a number is sent as is, so that the server reports it. */
const limitOf = (text: string): number | null => (text.trim() === "" ? null : Number(text));

/** What saving sends: only the settings that differ. */
export function changesOf(saved: Webhook, draft: Draft): Partial<SavedSettings> {
  const before = toDraft(saved);
  const patterns = patternsOf(draft.eventTypes);
  const isNamed = draft.name.trim() !== before.name;
  const headers = headersOf(draft.headers);
  const isHeaded = JSON.stringify(headers) !== JSON.stringify(headersOf(before.headers));
  const isTyped = patterns.join() !== patternsOf(before.eventTypes).join();
  return {
    ...(isNamed && { name: draft.name.trim() }),
    ...(isTyped && { event_types: patterns.length === 0 ? null : patterns }),
    ...(draft.rateLimit.trim() !== before.rateLimit && { rate_limit: limitOf(draft.rateLimit) }),
    ...(draft.maxConcurrency.trim() !== before.maxConcurrency && { max_concurrency: limitOf(draft.maxConcurrency) }),
    ...(draft.ordered !== before.ordered && { ordered: draft.ordered }),
    ...(isHeaded && { headers: headers.length === 0 ? null : Object.fromEntries(headers) }),
  };
}

/** What is wrong with the patterns, naming the pattern: the server names it by its position. */
export function wrongPattern(
  broken: { readonly field: string; readonly rule: string } | null,
  draft: Draft,
): string | null {
  const place = /^event_types(?:\[(\d+)\])?$/.exec(broken?.field ?? "");
  if (broken === null || place === null) return null;
  const pattern = patternsOf(draft.eventTypes)[Number(place[1])];
  return pattern === undefined ? `The types ${broken.rule}.` : `“${pattern}” ${broken.rule}.`;
}
