import { eq } from "drizzle-orm";
import type { ListedDelivery } from "../../domain/inbox.ts";
import type { InboxRange, InboxVerbs } from "../inbox.ts";
import { cursorInSteps } from "../steps.ts";
import { bounded, readBounded } from "./bounded-read.ts";
import type { Connection } from "./connection.ts";
import { holdLiving } from "./held-tenants.ts";
import { inboxDelivery, inboxSetting } from "./inbox-schema.ts";
import { jsonTextOf } from "./json-texts.ts";
import { arrayText } from "./parameters.ts";

interface InboxRow extends Omit<ListedDelivery, "headers" | "body"> {
  readonly headers: string;
  readonly body: Uint8Array;
}

/** The walk is short, because only a few are kept. */
const placesText = `select key::float8 as key, id from inbox_delivery where tenant_key = $1::bigint
  order by inbox_delivery.key desc`;

const deliveriesText = bounded(`
  select n::int as n, octet_length(body) + octet_length(headers) as size, id, received_at::float8 as "receivedAt",
    event_id as "eventId", headers, body, answered_status as "answeredStatus", is_test as "isTest"
  from unnest($3::bigint[]) with ordinality as place (key, n)
  join inbox_delivery on tenant_key = $2::bigint and inbox_delivery.key = place.key`);

const trimText = `delete from inbox_delivery where tenant_key = $1::bigint and key <=
  (select key from inbox_delivery where tenant_key = $1::bigint order by key desc limit 1 offset $2::bigint)`;

export function inboxVerbs({ pool, writes }: Connection): InboxVerbs {
  return {
    async inboxAnswer(tenantKey) {
      const [answer] = await pool.db
        .select({ status: inboxSetting.status, delayMs: inboxSetting.delayMs, silent: inboxSetting.silent })
        .from(inboxSetting)
        .where(eq(inboxSetting.tenantKey, tenantKey));
      return answer ?? null;
    },

    setInboxAnswer: (tenantKey, { status, delayMs, silent }) =>
      writes.submit(async (tx) => {
        await holdLiving(tx, tenantKey);
        const set = { status, delayMs, silent };
        await tx.db
          .insert(inboxSetting)
          .values({ tenantKey, ...set })
          .onConflictDoUpdate({ target: inboxSetting.tenantKey, set });
      }),

    // The tenant is locked, so keys are assigned in the order in which deliveries are kept, and each trims what it sees.
    keepInboxDelivery: (tenantKey, { headers, ...rest }, kept) =>
      writes.submit(async (tx) => {
        const { tenant } = await holdLiving(tx, tenantKey);
        await tx.db.insert(inboxDelivery).values({ ...rest, tenantKey, headers: JSON.stringify(headers) });
        await tx.run(trimText, [tenantKey, kept]);
        return tenant;
      }),

    async inboxDeliveries(tenantKey, range) {
      const places = await pool.read<Place>(placesText, [tenantKey]);
      const keys = within(places, range).map(({ key }) => key);
      const deliveries = cursorInSteps(
        keys,
        (step) => readBounded<InboxRow>(pool, deliveriesText, step, [tenantKey, arrayText(step.keys)]),
        toDelivery,
      );
      return { deliveries, total: places.length };
    },

    emptyInbox: (tenantKey) =>
      writes.submit(async (tx) => {
        await holdLiving(tx, tenantKey);
        await tx.db.delete(inboxDelivery).where(eq(inboxDelivery.tenantKey, tenantKey));
      }),
  };
}

interface Place {
  readonly key: number;
  readonly id: string;
}

/** A delivery that no longer exists counts as older than all that do. */
function within(places: readonly Place[], { limit, after, before }: InboxRange): readonly Place[] {
  const placeOf = (id: string) => places.find((place) => place.id === id)?.key ?? 0;
  const above = after === undefined ? 0 : placeOf(after);
  const below = before === undefined ? Number.POSITIVE_INFINITY : placeOf(before);
  return places.filter(({ key }) => key > above && key < below).slice(0, limit);
}

const toDelivery = ({ id, receivedAt, eventId, headers, body, answeredStatus, isTest }: InboxRow): ListedDelivery => ({
  id,
  receivedAt,
  eventId,
  headers: JSON.parse(headers),
  body: jsonTextOf(body),
  answeredStatus,
  isTest,
});
