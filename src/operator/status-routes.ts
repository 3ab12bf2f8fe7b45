import * as v from "valibot";
import { shownUrl } from "../domain/audit.ts";
import type { Pausable } from "../domain/pauses.ts";
import { type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import type { Metrics } from "../http/metrics.ts";
import type { Clock } from "../lib/clock.ts";
import { formatIso } from "../lib/iso-time.ts";
import type { FailingWebhook } from "../store/failing-webhooks.ts";
import type { Store } from "../store/store.ts";
import { commit, version } from "../version.ts";

export interface StatusRouteDeps {
  metrics: Pick<Metrics, "figures">;
  store: Pick<Store, "listFailingWebhooks">;
  clock: Clock;
  /** In ms since the Unix epoch. */
  startedAt: number;
  paused(): readonly Pausable[];
}

const tag = "Operator";

/** Listing more does not help: with this many failing, one looks for what they have in common. */
const mostFailing = 200;

const status = v.object({
  version: v.string(),
  commit: v.string(),
  started_at: v.string(),
  now: v.string(),
  paused: v.array(v.string()),
  queue: v.nullable(
    v.object({ waiting: v.number(), oldest_due_seconds: v.nullable(v.number()), in_flight: v.number() }),
  ),
  since_start: v.object({
    events: v.number(),
    delivered: v.number(),
    retried: v.number(),
    failed: v.number(),
  }),
  storage: v.object({
    database_bytes: v.number(),
    log_bytes: v.number(),
    used_bytes: v.pipe(
      v.nullable(v.number()),
      v.description("Of the database, without room that can be used again; null when it did not say in time."),
    ),
    events: v.pipe(v.nullable(v.number()), v.description("In the database, of all accounts.")),
    bytes_per_event: v.pipe(v.nullable(v.number()), v.description("What an event takes; null when there are none.")),
    disk_free_bytes: v.number(),
    disk_floor_bytes: v.number(),
  }),
  memory_bytes: v.number(),
  open_streams: v.number(),
});

const statusExample: v.InferOutput<typeof status> = {
  version: "1.2.0",
  commit: "5f0c1e7a92b8",
  started_at: "2026-03-01T12:34:56.789Z",
  now: "2026-03-01T13:34:56.789Z",
  paused: [],
  queue: { waiting: 12, oldest_due_seconds: 0.4, in_flight: 3 },
  since_start: { events: 18_204, delivered: 18_150, retried: 42, failed: 51 },
  storage: {
    database_bytes: 104_857_600,
    log_bytes: 4_194_304,
    ...{ used_bytes: 96_468_992, events: 181_672, bytes_per_event: 531 },
    disk_free_bytes: 53_687_091_200,
    disk_floor_bytes: 268_435_456,
  },
  memory_bytes: 120_586_240,
  open_streams: 2,
};

const failing = v.object({
  tenant_id: v.string(),
  tenant_name: v.string(),
  webhook_id: v.string(),
  url: v.pipe(v.string(), v.description("Without its query, which may be a secret.")),
  name: v.string(),
  failing_since: v.string(),
  disabled_at: v.nullable(v.string()),
});

const failingExample = {
  tenant_id: "t5k2m8q0w3r7xa",
  tenant_name: "Ada's shop",
  webhook_id: "wh_01j8z3k4m5n6p7q8r9s0t1v2w3",
  url: "https://shop.example.com/hook",
  name: "Shop",
  failing_since: "2026-03-01T08:41:00.000Z",
  disabled_at: null,
};

const toRecord = (webhook: FailingWebhook) => ({
  tenant_id: webhook.tenantId,
  tenant_name: webhook.tenantName,
  webhook_id: webhook.webhookId,
  url: shownUrl(webhook),
  name: webhook.name,
  failing_since: formatIso(webhook.failingSince),
  disabled_at: webhook.disabledAt === null ? null : formatIso(webhook.disabledAt),
});

/** How the server is doing, for the operator's page (rules, section 17). */
export function statusRoutes({ metrics, store, clock, startedAt, paused }: StatusRouteDeps): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "GET",
        path: "/operator/status",
        tag,
        summary: "Show how the server fares",
        description:
          "Counts are those of the server that answers, since it started. `queue` is null when the database did not say in time.",
        access: "operator",
        responses: { 200: { description: "Its figures.", schema: status, example: statusExample } },
      },
      async () => {
        const { queue, ...figures } = await metrics.figures();
        return ok({
          version,
          commit,
          started_at: formatIso(startedAt),
          now: formatIso(clock.now()),
          paused: paused(),
          queue: queue && {
            waiting: queue.pending,
            oldest_due_seconds: queue.oldestDueSeconds,
            in_flight: figures.inFlight,
          },
          since_start: figures.sinceStart,
          storage: {
            database_bytes: figures.databaseBytes,
            log_bytes: figures.logBytes,
            used_bytes: figures.stored?.usedBytes ?? null,
            events: figures.stored?.events ?? null,
            bytes_per_event: figures.stored?.events
              ? Math.round(figures.stored.usedBytes / figures.stored.events)
              : null,
            disk_free_bytes: figures.diskFreeBytes,
            disk_floor_bytes: figures.diskFloorBytes,
          },
          memory_bytes: figures.memoryBytes,
          open_streams: figures.openStreams,
        });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/operator/failing-webhooks",
        tag,
        summary: "List the failing webhooks of all accounts",
        description: `Those first that have failed for longest, ${mostFailing} at most. A disabled one stays listed until it is enabled.`,
        access: "operator",
        responses: {
          200: {
            description: "The webhooks.",
            schema: v.object({ webhooks: v.array(failing) }),
            example: { webhooks: [failingExample] },
          },
        },
      },
      async () => ok({ webhooks: (await store.listFailingWebhooks(mostFailing)).map(toRecord) }),
    ),
  ];
}
