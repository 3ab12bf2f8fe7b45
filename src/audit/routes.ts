import { type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import { invalidRequest } from "../http/error-models.ts";
import type { Store } from "../store/store.ts";
import * as m from "./model.ts";

/** Who did what, for the account and for the operator (rules, section 16). */
export function auditRoutes({ store }: { store: Pick<Store, "audit"> }): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "GET",
        path: "/v1/audit",
        tag: "Accounts",
        summary: "List who did what with the account",
        description:
          "Logins, failed logins, keys and secrets shown, new keys and passwords, changes of webhooks, replays, and what the operator did; kept for a year. " +
          "Logins, failed logins, keys and secrets shown, and replays of single events are counted by the hour.",
        access: "session",
        query: m.auditQuery,
        responses: {
          200: {
            description: "The entries, newest first.",
            schema: m.auditPage,
            example: { entries: [m.entryExample], total: 1, total_is_exact: true },
          },
          400: invalidRequest("size must be at most 1000."),
        },
      },
      async ({ tenant, query }) => {
        const { entries, total, totalIsExact } = await store.audit({ ...m.toStoreQuery(query), tenantId: tenant.id });
        return ok({ entries: entries.map(m.toEntryBody), total, total_is_exact: totalIsExact });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/operator/audit",
        tag: "Operator",
        summary: "List who did what on the server",
        description: "Of all accounts, or of one. Of a deleted account, what the operator did is left.",
        access: "operator",
        query: m.operatorAuditQuery,
        responses: {
          200: {
            description: "The entries, newest first.",
            schema: m.operatorAuditPage,
            example: { entries: [m.operatorEntryExample], total: 1, total_is_exact: true },
          },
          400: invalidRequest("size must be at most 1000."),
        },
      },
      async ({ query: { tenant, ...query } }) => {
        const { entries, total, totalIsExact } = await store.audit({
          ...m.toStoreQuery(query),
          ...(tenant !== undefined && { tenantId: tenant }),
        });
        return ok({ entries: entries.map(m.toOperatorEntryBody), total, total_is_exact: totalIsExact });
      },
    ),
  ];
}
