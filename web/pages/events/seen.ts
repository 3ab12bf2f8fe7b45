import { call } from "../../api/client.ts";
import type { Failures } from "../../api/types.ts";
import { useLoaded } from "../../stream/load.ts";
import type { ListedRecord } from "./record.ts";

/** Types and statuses that occur: what one is likely to look for. */
export interface Seen {
  readonly types: readonly string[];
  readonly statuses: readonly string[];
}

/** Of what failed in the last day, and of the rows that are shown. Nothing but suggestions, so it does not matter if they fail. */
export function useSeen(records: readonly ListedRecord[]): Seen {
  const failures = useLoaded("failures", (signal) => call<Failures>("/v1/failures", { signal }));
  const groups = failures.data?.groups ?? [];
  const types = [
    ...records.map(({ eventType }) => eventType),
    ...groups.flatMap(({ eventTypes }) => eventTypes.map(({ type }) => type)),
  ];
  const statuses = [...groups, ...records].map(({ statusCode }) => (statusCode === null ? null : String(statusCode)));
  return { types: sortedOnce(types), statuses: sortedOnce(statuses) };
}

const sortedOnce = (values: readonly (string | null)[]): string[] =>
  [...new Set(values)].filter((value) => value !== null && value !== "").sort() as string[];
