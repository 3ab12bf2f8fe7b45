import * as v from "valibot";
import { type AuditEntry, auditActions, auditActors } from "../domain/audit.ts";
import { inOrder, isoTime } from "../events/model.ts";
import { closedQuery, queryInteger } from "../http/validation.ts";
import { formatIso } from "../lib/iso-time.ts";

/** What `GET /v1/audit` and `GET /operator/audit` take and return. */

const filters = {
  page: v.optional(queryInteger(0, 1_000_000), "0"),
  size: v.optional(queryInteger(1, 1000), "50"),
  from: v.optional(isoTime("start")),
  to: v.optional(isoTime("end")),
  action: v.optional(
    v.picklist(auditActions, "must be the name of an action, such as webhooks.changed; GET /openapi.json lists them"),
  ),
};

export const auditQuery = v.pipe(closedQuery(filters), inOrder("from", "to"));

export const operatorAuditQuery = v.pipe(
  closedQuery({
    ...filters,
    tenant: v.optional(
      v.pipe(
        v.string(),
        v.description("Id of an account, even if it has been deleted. Empty: entries about the server itself."),
      ),
    ),
  }),
  inOrder("from", "to"),
);

/** The fields of either query that the store filters by. */
export function toStoreQuery({ page, size, from, to, action }: v.InferOutput<typeof auditQuery>) {
  return {
    offset: page * size,
    limit: size,
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(action !== undefined && { action }),
  };
}

const entry = v.pipe(
  v.object({
    action: v.string(),
    by: v.pipe(v.picklist(auditActors), v.description("`stranger`: somebody with a wrong password or token.")),
    via: v.nullable(v.string()),
    address: v.pipe(
      v.nullable(v.string()),
      v.description(
        "Address of the client. Null if it is not known, or if failed logins from many addresses are counted together.",
      ),
    ),
    times: v.pipe(v.number(), v.description("How often it happened within an hour.")),
    at: v.pipe(v.string(), v.description("When it first happened.")),
    last_at: v.pipe(v.string(), v.description("When it last happened.")),
    detail: v.record(v.string(), v.union([v.string(), v.number(), v.boolean(), v.array(v.string())])),
  }),
  v.title("AuditEntry"),
);

const operatorEntry = v.object({
  tenant_id: v.pipe(v.nullable(v.string()), v.description("Null: it concerns the server itself.")),
  ...entry.entries,
});

const counted = {
  total: v.number(),
  total_is_exact: v.pipe(v.boolean(), v.description("False when counting stopped at 10,000.")),
};

export const auditPage = v.pipe(v.object({ entries: v.array(entry), ...counted }), v.title("AuditPage"));
export const operatorAuditPage = v.object({ entries: v.array(operatorEntry), ...counted });

export const entryExample = {
  action: "webhooks.changed",
  by: "account",
  via: null,
  address: "203.0.113.7",
  times: 1,
  at: "2026-03-01T12:34:56.789Z",
  last_at: "2026-03-01T12:34:56.789Z",
  detail: { added: ["https://example.com/hooks"] },
} as const;

export const operatorEntryExample = {
  tenant_id: "t5k2m8q0w3r7xa",
  ...entryExample,
  action: "account.suspended",
  by: "operator",
  via: "command of ada",
  address: "127.0.0.1",
  detail: {},
} as const;

/** Where the operator connected from is not the account's business. */
export function toEntryBody({ via, address, ...entry }: AuditEntry) {
  const isOperators = entry.actor === "operator";
  return { ...bodyOf(entry), via: isOperators ? null : via, address: isOperators ? null : address };
}

export const toOperatorEntryBody = ({ via, address, ...entry }: AuditEntry) => ({
  tenant_id: entry.tenantId === "" ? null : entry.tenantId,
  ...bodyOf(entry),
  via,
  address,
});

const bodyOf = ({ action, actor, times, at, lastAt, detail = {} }: Omit<AuditEntry, "via" | "address">) => ({
  ...{ action, by: actor, times, detail },
  at: formatIso(at),
  last_at: formatIso(lastAt),
});
