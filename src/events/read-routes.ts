import { invalidField } from "../domain/errors.ts";
import { isFiltered, type RecordFilters } from "../domain/event.ts";
import { payloadErased } from "../domain/retention.ts";
import type { Tenant } from "../domain/tenant.ts";
import { type ErasedEndpoint, endpoint, ok, type Reply } from "../http/endpoint.ts";
import { invalidRequest, refusal } from "../http/error-models.ts";
import { listReply, writeJson } from "../http/list-reply.ts";
import type { Clock } from "../lib/clock.ts";
import { firstMs, formatIso, formatIsoOrNull } from "../lib/iso-time.ts";
import { keptAttempts } from "../store/deliveries.ts";
import type { StatSums } from "../store/stats.ts";
import type { PreviewedDelivery, Store } from "../store/store.ts";
import { attemptExample, toAttemptBody } from "./attempt-model.ts";
import * as m from "./model.ts";
import { pageList, recordList } from "./record.ts";

export interface EventReadRouteDeps {
  store: Pick<Store, "page" | "records" | "attempts" | "previewDelivery" | "stats" | "waiting">;
  clock: Clock;
  /** The request of a delivery as it would be sent now, with a fresh signature. */
  preview(delivery: PreviewedDelivery): Promise<{ headers: Record<string, string>; body: string }>;
}

const tag = "Events";

/** Carries what a response that is an array has no field for. */
const totalCount = "Total-Count";

/** More would be finer than any screen can show. */
const maxBuckets = 1000;

/** Without `from`, an hour of minutes; with another bucket width, just as many buckets. */
const defaultBuckets = 60;

export function eventReadRoutes({ store, clock, preview }: EventReadRouteDeps): ErasedEndpoint[] {
  async function list({ tenant, raw }: { tenant: Tenant; raw: Request }, query: m.ListQuery): Promise<Reply> {
    const { size, state, webhook, type, q, code, status, replay, from, to, payload } = query;
    // Keeps the offset a number that the store can count to; that far past the last page, all pages are alike.
    const page = Math.min(query.page, Math.floor(Number.MAX_SAFE_INTEGER / size) - 1);
    const filters: RecordFilters = {
      ...(state !== undefined && { state }),
      ...(webhook !== undefined && { webhookId: webhook }),
      ...(type !== undefined && { type }),
      ...(code !== undefined && { code }),
      ...(status !== undefined && { status }),
      ...(replay !== undefined && { replayId: replay }),
      ...(from !== undefined && { from }),
      ...(to !== undefined && { to }),
    };
    const part = ({ true: "whole", false: "none", start: "start" } as const)[payload];
    const search = q !== undefined && { text: q };
    const isAbandoned = () => raw.signal.aborted;
    const asked = { tenantKey: tenant.key, page, size, ...filters, ...search, payload: part, isAbandoned };
    const found = await store.page(asked);
    const shown = { isFiltered: isFiltered(filters) || q !== undefined, payload: part };
    return listReply(pageList(found, tenant.id, shown));
  }

  return [
    endpoint(
      {
        method: "GET",
        path: "/v1/events",
        tag,
        summary: "List the event records, newest ingestion first",
        access: "session",
        query: m.listQuery,
        responses: {
          200: { description: "One page of records.", schema: m.pageBody, example: m.pageExample },
          400: invalidRequest("size must be at most 1000."),
        },
      },
      (request) => list(request, request.query),
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/events/state/:state",
        tag,
        summary: "List the event records in one state, newest ingestion first",
        access: "session",
        params: m.statePath,
        query: m.stateListQuery,
        responses: {
          200: { description: "One page of records.", schema: m.pageBody, example: m.pageExample },
          400: invalidRequest("state must be DELIVERED, FAILED, PENDING or SKIPPED."),
        },
      },
      (request) => list(request, { ...request.query, ...request.params }),
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/events/:id",
        tag,
        summary: "Get all records of one event, one per target webhook",
        access: "session",
        params: m.eventPath,
        responses: {
          200: {
            description: "The records, in the order of the webhooks.",
            schema: m.recordsBody,
            example: [m.recordExample],
          },
          404: m.eventNotFound,
        },
      },
      async ({ tenant, params }) => {
        const records = await store.records(tenant.key, params.id);
        if (!records) throw m.noSuchEvent();
        return listReply(recordList(records, tenant.id), { ifEmpty: m.noSuchEvent });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/events/:id/attempts",
        tag,
        summary: "List the delivery attempts of one event, oldest first",
        description:
          "Includes attempts of replays. `Total-Count` is their number, so the latest are on page " +
          "⌈`Total-Count` / `size`⌉ - 1.",
        access: "session",
        params: m.eventPath,
        query: m.attemptsQuery,
        responses: {
          200: {
            description: `One page of the latest ${keptAttempts} attempts of each record; \`attemptsForgotten\` of the record counts the earlier ones.`,
            schema: m.attemptsBody,
            example: [attemptExample],
            headers: { [totalCount]: "Number of stored attempts of the event, on all pages." },
          },
          400: invalidRequest("size must be at most 1000."),
          404: m.eventNotFound,
        },
      },
      async ({ tenant, params, query: { page, size } }) => {
        const found = await store.attempts(tenant.key, params.id, { offset: page * size, limit: size });
        if (!found) throw m.noSuchEvent();
        const list = { before: "[", entries: found.attempts, write: writeJson(toAttemptBody), after: "]" };
        return listReply(list, { headers: { [totalCount]: String(found.total) } });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/events/:id/delivery",
        tag,
        summary: "Show the delivery of an event as it would be sent now, freshly signed",
        access: "session",
        params: m.eventPath,
        responses: {
          200: {
            description: "Headers and body, and the type of the event.",
            schema: m.deliveryBody,
            example: m.deliveryExample,
          },
          400: refusal("The payload was erased (`payload_erased`).", payloadErased()),
          404: m.eventNotFound,
        },
      },
      async ({ tenant, params }) => {
        const delivery = await store.previewDelivery(tenant.key, params.id);
        if (!delivery) throw m.noSuchEvent();
        const { headers, body } = await preview(delivery);
        return ok({ headers, body, eventType: delivery.type });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/stats",
        tag,
        summary: "Count events, deliveries and attempts in time buckets",
        description: `Covers the last hour by the minute by default, and at most ${maxBuckets} buckets. With \`webhook\`, only deliveries to that webhook count.`,
        access: "session",
        query: m.statsQuery,
        responses: {
          200: {
            description: "Every bucket from `from` to `to`, including empty ones.",
            schema: m.statsBody,
            example: m.statsExample,
          },
          400: invalidRequest("bucket must be a duration of whole minutes such as 1m, 5m or 1h."),
        },
      },
      async ({ tenant, query }) => {
        const { webhook, ...given } = query;
        const range = statRange(given, clock.now());
        if (webhook !== undefined) {
          const { buckets, total } = await store.stats(tenant.key, { ...range, webhookId: webhook });
          return ok({
            buckets: buckets.map(({ at, ...sums }) => ({ at: formatIso(at), ...withoutAccepted(sums) })),
            total: withoutAccepted(total),
          });
        }
        const [{ buckets, total }, waiting] = await Promise.all([
          store.stats(tenant.key, range),
          store.waiting(tenant.key),
        ]);
        return ok({
          buckets: buckets.map((bucket) => ({ ...bucket, at: formatIso(bucket.at) })),
          total,
          waiting: { records: waiting.records, oldestIngestionTimestamp: formatIsoOrNull(waiting.oldestIngestedAt) },
        });
      },
    ),
  ];
}

const withoutAccepted = ({ accepted: _, ...sums }: StatSums) => sums;

function statRange({ bucket, ...given }: Omit<m.StatsQuery, "webhook">, now: number) {
  const defaultSpan = (defaultBuckets - 1) * bucket;
  const to = given.to ?? Math.max(now, given.from ?? now);
  const from = given.from ?? Math.max(to - defaultSpan, firstMs);
  const buckets = Math.floor(to / bucket) - Math.floor(from / bucket) + 1;
  if (buckets > maxBuckets) {
    throw invalidField(
      "bucket",
      `is too short for this time range: it would give ${buckets} buckets, and the limit is ${maxBuckets}`,
      "too_many_buckets",
    );
  }
  return { from, to, bucketMs: bucket };
}
