import { UsageError } from "../../domain/errors.ts";
import { failureCodes, mayBeRetried } from "../../domain/failure.ts";
import { formatIso } from "../../lib/iso-time.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Flag } from "../arguments.ts";
import { plainText } from "../table.ts";
import { parseMoment } from "./moment.ts";

/** A filter that narrows lists of events. Its flag is its field with two dashes. */
export interface Filter {
  /** Its name in the API. */
  readonly field: string;
  readonly value: string;
  readonly choices?: readonly string[];
  readonly doc: string;
  /** What it means for a replay; null: it does not apply to replays. */
  readonly docOfReplays: string | null;
  /** Turns the typed text into what the API takes; without it, the text is sent as typed. @throws UsageError */
  read?(text: string, flag: string, now: number): string | number;
}

export const filters: readonly Filter[] = [
  {
    field: "webhook",
    value: "ID",
    doc: "Deliveries to this webhook: its id, or its URL with or without the query. Also a removed one.",
    docOfReplays:
      "Deliver to this webhook alone, and only what it has had before: its id, or its URL with or without the query.",
  },
  {
    field: "type",
    value: "TYPE",
    doc: "Events of this type, exactly, such as order.paid.",
    docOfReplays: "Events of this type, exactly, such as order.paid.",
  },
  {
    field: "q",
    value: "TEXT",
    doc: "Text in the payload, or part of the event's id. Searches from the newest event back, and says how far it got.",
    docOfReplays: null,
  },
  {
    field: "code",
    value: "CODE",
    choices: Object.keys(failureCodes),
    doc: "Deliveries that failed for this reason, or wait for a retry after it: timeout, http_status, connection_refused, …",
    docOfReplays:
      "What failed for this reason (timeout, http_status, connection_refused, …), to the webhooks where it did. Where one of these was removed, --webhook names the one that gets it instead.",
  },
  {
    field: "status",
    value: "N",
    doc: "Deliveries whose latest attempt failed with this status, such as 503.",
    docOfReplays:
      "What failed with this status, such as 503, to the webhooks where it did. Where one of these was removed, --webhook names the one that gets it instead.",
    read: wholeNumberOr,
  },
  {
    field: "from",
    value: "WHEN",
    doc: "Events accepted from then on: `10m` ago, or a time such as 2026-03-01T12:00Z.",
    docOfReplays: "Events accepted from then on: `10m` ago, or a time such as 2026-03-01T12:00Z.",
    read: (text, flag, now) => readMoment(text, "start", flag, now),
  },
  {
    field: "to",
    value: "WHEN",
    doc: "Events accepted until then, inclusive.",
    docOfReplays: "Events accepted until then, inclusive.",
    read: (text, flag, now) => readMoment(text, "end", flag, now),
  },
];

/** The given filters, by their names in the API. */
export type Filtering = Readonly<Record<string, string | number>>;

export const replayFilters: readonly Filter[] = filters.flatMap((filter) =>
  filter.docOfReplays === null ? [] : [{ ...filter, doc: filter.docOfReplays }],
);

export const flagOf = ({ field, value, choices, doc }: Filter): Flag => ({
  name: `--${field}`,
  value,
  ...(choices && { choices }),
  doc,
});

/** @throws UsageError */
export function readFilters(flags: ReadonlyMap<string, string>, from: readonly Filter[], now: number): Filtering {
  return Object.fromEntries(
    from.flatMap((filter) => {
      const { name } = flagOf(filter);
      const text = flags.get(name);
      return text === undefined ? [] : [[filter.field, filter.read?.(text, name, now) ?? text]];
    }),
  );
}

/** The given filters as one types them, for a command that a hint names. */
export function spellFilters(flags: ReadonlyMap<string, string>, from: readonly Filter[]): readonly string[] {
  return from.flatMap((filter) => {
    const { name } = flagOf(filter);
    const text = flags.get(name);
    return text === undefined ? [] : [`${name} ${shellWord(plainText(text))}`];
  });
}

/** Why nothing was found, if a pattern was given, as webhooks take it; null if none was. */
export const hintAtPattern = ({ type }: Filtering): string | null =>
  typeof type === "string" && type.endsWith(".*")
    ? `--type is one type, not a pattern. Try: a whole type, such as ${plainText(type.slice(0, -1))}paid`
    : null;

/** Whether what was looked for, and has not failed, may wait for a retry: not after a failure that ends a delivery at once. */
export const mayWait = ({ code }: Filtering): boolean => typeof code !== "string" || mayBeRetried(code);

/** Anything but a whole number is left for the server to refuse. */
function wholeNumberOr(text: string): string | number {
  return /^\d{1,9}$/.test(text) ? Number(text) : text;
}

export function readMoment(text: string, role: "start" | "end", flag: string, now: number): string {
  const ms = parseMoment(text, role, now);
  if (ms !== null) return formatIso(ms);
  throw new UsageError(
    `${flag} must be a duration, or a time in ISO 8601, not "${text}". Try: ${flag} 10m, or ${flag} 2026-03-01T12:00Z`,
  );
}
