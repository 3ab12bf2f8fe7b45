import type { SavedSettings, Webhook } from "../../api/types.ts";

/** The settings of a webhook as they are typed. */
export interface Draft {
  readonly name: string;
  /** A pattern in each line; "": every event. */
  readonly eventTypes: string;
  /** "": none. */
  readonly rateLimit: string;
  readonly maxConcurrency: string;
}

export const toDraft = ({ name, event_types, rate_limit, max_concurrency }: Webhook): Draft => ({
  name,
  eventTypes: (event_types ?? []).join("\n"),
  rateLimit: String(rate_limit ?? ""),
  maxConcurrency: String(max_concurrency ?? ""),
});

const patternsOf = (text: string): string[] => text.split(/[\s,]+/).filter((pattern) => pattern !== "");

/** Nothing is no limit; what is no number is sent as it is, for the server to say so. */
const limitOf = (text: string): number | null => (text.trim() === "" ? null : Number(text));

/** What saving it sends: the settings that differ, and no others. */
export function changesOf(saved: Webhook, draft: Draft): Partial<SavedSettings> {
  const before = toDraft(saved);
  const patterns = patternsOf(draft.eventTypes);
  const isNamed = draft.name.trim() !== before.name;
  const isTyped = patterns.join() !== patternsOf(before.eventTypes).join();
  return {
    ...(isNamed && { name: draft.name.trim() }),
    ...(isTyped && { event_types: patterns.length === 0 ? null : patterns }),
    ...(draft.rateLimit.trim() !== before.rateLimit && { rate_limit: limitOf(draft.rateLimit) }),
    ...(draft.maxConcurrency.trim() !== before.maxConcurrency && { max_concurrency: limitOf(draft.maxConcurrency) }),
  };
}

/** What is wrong with the patterns, by the pattern: the server names it by its place. */
export function wrongPattern(
  broken: { readonly field: string; readonly rule: string } | null,
  draft: Draft,
): string | null {
  const place = /^event_types(?:\[(\d+)\])?$/.exec(broken?.field ?? "");
  if (broken === null || place === null) return null;
  const pattern = patternsOf(draft.eventTypes)[Number(place[1])];
  return pattern === undefined ? `The types ${broken.rule}.` : `“${pattern}” ${broken.rule}.`;
}
