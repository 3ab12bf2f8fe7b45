import { call } from "../../api/client.ts";
import { serverNow } from "../../api/server-time.ts";
import { accountId } from "../../api/session.ts";
import type { EventPage, Failures } from "../../api/types.ts";
import { useLoaded } from "../../stream/load.ts";
import type { ListedRecord } from "./record.ts";

/** Types and statuses that occur: what users are likely to look for. */
export interface Seen {
  readonly types: readonly string[];
  readonly statuses: readonly string[];
}

const failuresOfMs = 7 * 86_400_000;
const newest = 200;
/** More would be too long a list to choose from; others are typed. */
const mostTypes = 200;

/** Those of the account, as far as lists have shown them in this tab. */
let known: { tenantId: string; types: readonly string[] } = { tenantId: "", types: [] };

/**
 * Taken from what failed in the last week, the newest records, the rows that are shown, and those shown earlier. These
 * are only suggestions, so it does not matter if reading them fails.
 */
export function useSeen(records: readonly ListedRecord[]): Seen {
  const loaded = useLoaded("seen", async (signal) => {
    const from = new Date(serverNow() - failuresOfMs).toISOString();
    const [{ groups }, { events }] = await Promise.all([
      call<Failures>("/v1/failures", { query: { from }, signal }),
      call<EventPage>("/v1/events", { query: { size: newest, payload: false }, signal }),
    ]);
    return { groups, events };
  });
  const { groups = [], events = [] } = loaded.data ?? {};
  const tenantId = accountId.value;
  if (known.tenantId !== tenantId) known = { tenantId, types: [] };
  const types = sortedOnce([
    ...known.types,
    ...[...records, ...events].map(({ eventType }) => eventType),
    ...groups.flatMap(({ eventTypes }) => eventTypes.map(({ type }) => type)),
  ]).slice(0, mostTypes);
  known.types = types;
  const statuses = [...groups, ...records].map(({ statusCode }) => (statusCode === null ? null : String(statusCode)));
  return { types, statuses: sortedOnce(statuses) };
}

const sortedOnce = (values: readonly (string | null)[]): string[] =>
  [...new Set(values)].filter((value) => value !== null && value !== "").sort() as string[];
