import { invalidField } from "../domain/errors.ts";
import { type DeliveredTypes, goesOn } from "../domain/failure-groups.ts";
import { type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import { invalidRequest } from "../http/error-models.ts";
import type { Clock } from "../lib/clock.ts";
import { firstMs } from "../lib/iso-time.ts";
import type { UnlistedGroup } from "../store/failures.ts";
import type { Store, WebhookHealth } from "../store/store.ts";
import { healthLimits } from "../store/webhook-health.ts";
import * as m from "./failure-model.ts";

export interface FailureRouteDeps {
  store: Pick<Store, "failures" | "webhookHealth">;
  clock: Clock;
}

const dayMs = 24 * 3_600_000;

/** Failures are counted by the hour, so they are read by the hour. */
const maxDays = 31;

export function failureRoutes({ store, clock }: FailureRouteDeps): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "GET",
        path: "/v1/failures",
        tag: "Events",
        summary: "Count failures, grouped by webhook and cause",
        description: `All failures in a group have the same webhook, \`errorCode\`, \`statusCode\` and first line of the response. Covers the events of the last 24 hours by default, and of ${maxDays} days at most.`,
        access: "session",
        query: m.failuresQuery,
        responses: {
          200: {
            description: "The groups of failures.",
            schema: m.failuresBody,
            example: m.failuresExample,
          },
          400: invalidRequest(`from must be at most ${maxDays} days before to.`, "range_too_long"),
        },
      },
      async ({ tenant, query: { webhook, ...given } }) => {
        const [report, health] = await Promise.all([
          store.failures({
            tenantKey: tenant.key,
            ...rangeOf(given, clock.now()),
            ...(webhook !== undefined && { webhookId: webhook }),
          }),
          store.webhookHealth(tenant.key, healthLimits),
        ]);
        return ok(m.toFailuresBody(report, (group) => goesOn(group, deliveredTo(group, health))));
      },
    ),
  ];
}

/**
 * The types that a group's webhook has taken, if it is still registered. Where no webhook was registered, there may still be
 * none.
 */
function deliveredTo({ webhook }: UnlistedGroup, health: readonly WebhookHealth[]): DeliveredTypes | null {
  if (webhook === null) return health.length === 0 ? new Map() : null;
  return health.find((one) => one.webhook.id === webhook.id)?.deliveredTypes ?? null;
}

function rangeOf(given: Pick<m.FailuresQuery, "from" | "to">, now: number) {
  const to = given.to ?? Math.max(now, given.from ?? now);
  const from = given.from ?? Math.max(to - dayMs, firstMs);
  if (to - from > maxDays * dayMs)
    throw invalidField("from", `must be at most ${maxDays} days before to`, "range_too_long");
  return { from, to };
}
