import { labelOf } from "../../format/label.ts";
import { count } from "../../format/number.ts";
import { isoOrNothing } from "../../format/time.ts";

export type Kind = "failed" | "timeline" | "single" | "all";

/** What is to be delivered again, as encoded in the URL. */
export interface Choice {
  readonly kind: Kind;
  readonly eventId: string;
  /** ISO 8601, both inclusive; "": not chosen yet. */
  readonly from: string;
  readonly to: string;
}

export const kinds: Readonly<Record<Kind, { text: string; hint: string }>> = {
  failed: {
    text: "Everything that failed",
    hint: "Failed events, to the webhooks that have not acknowledged them.",
  },
  timeline: { text: "A time range", hint: "Events accepted in a range of time." },
  single: { text: "One event", hint: "By its id." },
  all: { text: "Everything", hint: "The whole history of the account. This can take a while." },
};

const isKind = (text: string | undefined): text is Kind => Object.hasOwn(kinds, text ?? "");

/** Reads the query of the page and ignores what it does not understand. */
export function readChoice(query: Readonly<Record<string, string>>): Choice {
  const eventId = query.event ?? "";
  const from = isoOrNothing(query.from ?? query.startTime);
  const to = isoOrNothing(query.to ?? query.endTime);
  const meant = eventId !== "" ? "single" : from !== "" || to !== "" ? "timeline" : "failed";
  return { kind: isKind(query.kind) ? query.kind : meant, eventId, from, to };
}

/** The page's URL for a choice and a page of the list, from 1. */
export function urlOf({ kind, eventId, from, to }: Choice, page: number): string {
  const query = new URLSearchParams();
  if (kind !== "failed") query.set("kind", kind);
  if (kind === "single" && eventId !== "") query.set("event", eventId);
  if (kind === "timeline" && from !== "") query.set("from", from);
  if (kind === "timeline" && to !== "") query.set("to", to);
  if (page > 1) query.set("page", String(page));
  return query.size === 0 ? "/replays" : `/replays?${query}`;
}

/** What is missing before anything can be selected; null: nothing. */
export function missing({ kind, eventId, from, to }: Choice): string | null {
  if (kind === "single" && eventId.trim() === "") return "Enter an event id.";
  if (kind === "timeline" && (from === "" || to === "")) return "Choose when the range starts and ends.";
  if (kind === "timeline" && from > to) return "The range starts after it ends.";
  return null;
}

/** The fields that this kind of replay takes, without its label. */
export function fieldsOf({ kind, eventId, from, to }: Choice): Readonly<Record<string, string>> {
  if (kind === "single") return { eventId: eventId.trim() };
  return kind === "timeline" ? { startTime: from, endTime: to } : {};
}

/** The text of the button. @param selected null while it is not known */
export function startText(kind: Kind, selected: number | null): string {
  if (kind === "single") return "Replay this event";
  if (selected === null || selected === 0) return "Replay";
  const events = selected === 1 ? "event" : "events";
  if (kind === "failed") return `Replay ${count(selected)} failed ${events}`;
  return kind === "all" && selected > 1
    ? `Replay all ${count(selected)} events`
    : `Replay ${count(selected)} ${events}`;
}

/** Why there is nothing to replay. */
export const nothingSelected: Readonly<Record<Kind, string>> = {
  failed: "No events have failed, so there is nothing to replay.",
  timeline: "No events were accepted in this range.",
  single: "This account has no event with this id.",
  all: "This account has no events yet.",
};

export const defaultLabel = (kind: Kind, atMs: number): string => labelOf(labelWords[kind], atMs);

const labelWords: Readonly<Record<Kind, string>> = { failed: "failed", timeline: "range", single: "event", all: "all" };
