import { failureCodes } from "../../domain/failure.ts";
import { formatIso } from "../../lib/iso-time.ts";
import { type Flag, UsageError } from "../arguments.ts";
import { parseMoment } from "./moment.ts";

/** What lists of events are narrowed by. The flag of a filter is its field with two dashes. */
export interface Filter {
  /** Its name in the API. */
  readonly field: string;
  readonly value: string;
  readonly choices?: readonly string[];
  readonly doc: string;
  /** Whether replays are narrowed by it, too. */
  readonly ofReplays: boolean;
  /** What the API takes for what was typed; without it, the very text. @throws UsageError */
  read?(text: string, flag: string, now: number): string;
}

export const filters: readonly Filter[] = [
  {
    field: "webhook",
    value: "ID",
    doc: "Deliveries to this webhook: its id or URL, also of a removed one.",
    ofReplays: false,
  },
  { field: "type", value: "TYPE", doc: "Events of this type, exactly, such as order.paid.", ofReplays: false },
  {
    field: "code",
    value: "CODE",
    choices: Object.keys(failureCodes),
    doc: "Deliveries that failed so, or wait after such a failure: timeout, http_status, connection_refused, …",
    ofReplays: false,
  },
  {
    field: "status",
    value: "N",
    doc: "Deliveries whose latest attempt failed with this status, such as 503.",
    ofReplays: false,
  },
  {
    field: "from",
    value: "WHEN",
    doc: "Events accepted from then on: `10m` ago, or a time such as 2026-03-01T12:00Z.",
    ofReplays: true,
    read: (text, flag, now) => readMoment(text, "start", flag, now),
  },
  {
    field: "to",
    value: "WHEN",
    doc: "Events accepted until then, inclusive.",
    ofReplays: true,
    read: (text, flag, now) => readMoment(text, "end", flag, now),
  },
];

export const replayFilters = filters.filter(({ ofReplays }) => ofReplays);

export const flagOf = ({ field, value, choices, doc }: Filter): Flag => ({
  name: `--${field}`,
  value,
  ...(choices && { choices }),
  doc,
});

/** The filters that are given, by their names in the API. @throws UsageError */
export function readFilters(
  flags: ReadonlyMap<string, string>,
  from: readonly Filter[],
  now: number,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    from.flatMap((filter) => {
      const { name } = flagOf(filter);
      const text = flags.get(name);
      return text === undefined ? [] : [[filter.field, filter.read?.(text, name, now) ?? text]];
    }),
  );
}

function readMoment(text: string, role: "start" | "end", flag: string, now: number): string {
  const ms = parseMoment(text, role, now);
  if (ms !== null) return formatIso(ms);
  throw new UsageError(
    `${flag} must be a duration, or a time in ISO 8601, not "${text}". Try: ${flag} 10m, or ${flag} 2026-03-01T12:00Z`,
  );
}
