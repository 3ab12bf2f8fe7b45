import type { Database } from "bun:sqlite";
import { firstSeqAt } from "../../lib/id.ts";
import { eventsInOneLook, type OldEvents, type OldEventsQuery } from "../retention.ts";
import { unlessDamaged } from "./damage.ts";

const inOneLook = "from event where seq > ?1 and seq < ?2 order by seq";

/** Along the table itself: events lie in the order of their numbers, and what goes together lies together. */
export function oldEvents(
  client: Database,
  { afterSeq, before, accounts, withPayload, limit }: OldEventsQuery,
): OldEvents {
  const toSeq = firstSeqAt(before);
  const other = accounts.kind === "only" ? "" : "not";
  const events = unlessDamaged(() =>
    client
      .query<{ seq: number; tenantKey: number }, [number, number, string, number]>(
        `select seq, tenant_key as tenantKey from
           (select seq, tenant_key, ${withPayload ? "length(payload) > 0" : "1"} as isThere ${inOneLook} limit ${eventsInOneLook})
         where isThere and tenant_key ${other} in (select value from json_each(?3)) limit ?4`,
      )
      .all(afterSeq, toSeq, JSON.stringify(accounts.tenantKeys), limit),
  );
  const last = events?.at(-1);
  if (events && last && events.length === limit) return { events, lookedTo: last.seq };
  const end = unlessDamaged(() =>
    client
      .query<{ seq: number }, [number, number]>(`select seq ${inOneLook} limit 1 offset ${eventsInOneLook - 1}`)
      .get(afterSeq, toSeq),
  );
  return { events: events ?? [], lookedTo: end?.seq ?? null };
}
