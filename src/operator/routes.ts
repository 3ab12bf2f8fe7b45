import * as v from "valibot";
import type { Accounts } from "../accounts/accounts.ts";
import type { ApiKeys } from "../accounts/api-keys.ts";
import * as m from "../accounts/model.ts";
import type { SigningKeys } from "../accounts/signing-keys.ts";
import type { StorageBytes } from "../accounts/storage-bytes.ts";
import type { NoteAct } from "../audit/note.ts";
import type { Origin } from "../domain/audit.ts";
import { invalidField } from "../domain/errors.ts";
import { orderedQuotaOf, webhooksAllowed } from "../domain/limits.ts";
import { statusOf, suspensionCauses, type Tenant } from "../domain/tenant.ts";
import { utcMonth } from "../domain/tenant-state.ts";
import { type CheckedRequest, created, type ErasedEndpoint, endpoint, noContent, ok } from "../http/endpoint.ts";
import { invalidRequest } from "../http/error-models.ts";
import { anyTier, suspendedBy } from "../http/fields.ts";
import { type Sessions, viewLifetimeSeconds } from "../http/session.ts";
import { closedQuery, jsonObject, queryInteger } from "../http/validation.ts";
import type { Clock } from "../lib/clock.ts";
import { formatIso } from "../lib/iso-time.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";
import { fromLimits, limitsDetail, setLimitsBody, setLimitsExample, shownLimits, toLimits } from "./limits.ts";
import { operatorOrigin } from "./origin.ts";

export interface OperatorRouteDeps {
  store: Pick<Store, "listTenants" | "noteAct" | "usage" | "refusedEvents" | "webhooks">;
  storageBytes: StorageBytes;
  clock: Clock;
  accounts: Accounts;
  log: Log;
  noteAct: NoteAct;
  sessions: Pick<Sessions, "view">;
  /** Generates a new operator token; from then on the old one is refused. */
  rotateToken(): string;
  apiKeys: Pick<ApiKeys, "rotate">;
  signingKeys: Pick<SigningKeys, "rotateSecret">;
}

const tag = "Operator";

const path = v.object({ id: v.string() });

/** What a new password ends when everything is to end. */
const ended = ["sessions", "api_keys", "signing_secret"] as const;

const record = v.object({
  tenant_id: v.string(),
  tenant_name: v.string(),
  email: v.string(),
  tier: anyTier,
  enforced_tier: v.nullable(anyTier),
  status: v.string(),
  suspended_by: suspendedBy,
  created_at: v.string(),
});

const exampleRecord = {
  tenant_id: "t5k2m8q0w3r7xa",
  tenant_name: "Ada's shop",
  email: "ada@example.com",
  tier: "pro",
  enforced_tier: "pro",
  status: "active",
  suspended_by: [],
  created_at: "2026-03-01T12:34:56.789Z",
};

const toRecord = (tenant: Tenant) => ({
  tenant_id: tenant.id,
  tenant_name: tenant.name,
  email: tenant.email,
  tier: tenant.tier,
  enforced_tier: tenant.enforcedTier,
  status: statusOf(tenant),
  suspended_by: suspensionCauses(tenant),
  created_at: formatIso(tenant.createdAt),
});

const detail = v.object({
  ...record.entries,
  max_events_per_month: v.number(),
  max_webhooks: v.number(),
  events_this_month: v.number(),
  storage_bytes: v.nullable(v.number()),
  webhooks: v.number(),
  limits: v.pipe(
    shownLimits,
    v.description("What the operator has set for this account. null: what its tier includes."),
  ),
  refused_this_month: m.refusedThisMonth,
});

const exampleDetail = {
  ...exampleRecord,
  ...{
    max_events_per_month: 250_000,
    max_webhooks: 10,
    events_this_month: 137,
    storage_bytes: 81_432,
    webhooks: 1,
    limits: setLimitsExample,
  },
  refused_this_month: { quota: 0, inactive: 0, invalid: 2 },
};

const reason = v.pipe(v.string(), v.trim(), v.maxLength(500, "must be at most 500 characters long"));

const changed = { description: "The updated account.", schema: record, example: exampleRecord };

/** What only the operator of the server may do (rules, section 13). The `postrider tenant …` commands call it. */
export function operatorRoutes(deps: OperatorRouteDeps): ErasedEndpoint[] {
  const { store, storageBytes, clock, accounts, apiKeys, signingKeys, sessions, log, noteAct, rotateToken } = deps;

  /** The private halves of Ed25519 keys never leave the server, so they can stay. */
  async function endKeys(tenant: Tenant, origin: Origin): Promise<void> {
    await apiKeys.rotate(tenant, 0, origin);
    await signingKeys.rotateSecret(tenant, origin, 0);
    log.write("info", "account.keys_ended", { tenant: tenant.id });
  }

  async function toDetail(tenant: Tenant) {
    const now = clock.now();
    const { eventsThisMonth } = await store.usage(tenant.key, now);
    return {
      ...toRecord(tenant),
      max_events_per_month: orderedQuotaOf(tenant),
      max_webhooks: webhooksAllowed(tenant),
      events_this_month: eventsThisMonth,
      storage_bytes: await storageBytes(tenant.key),
      webhooks: (await store.webhooks(tenant.key)).length,
      limits: toLimits(tenant),
      refused_this_month: await store.refusedEvents(tenant.key, utcMonth(now)),
    };
  }

  const endpoints = [
    endpoint(
      {
        method: "GET",
        path: "/operator/tenants",
        tag,
        summary: "List the accounts",
        access: "operator",
        query: closedQuery({
          page: v.optional(queryInteger(0, 1_000_000_000), "0"),
          size: v.optional(queryInteger(1, 1000), "20"),
          q: v.optional(
            v.pipe(
              v.string(),
              v.maxLength(200, "must be at most 200 characters long"),
              v.description("Part of the id, the name or the e-mail address, in any case."),
            ),
            "",
          ),
        }),
        responses: {
          200: {
            description: "The accounts, newest first, and their total number.",
            schema: v.object({ tenants: v.array(record), total: v.number() }),
            example: { tenants: [exampleRecord], total: 1 },
          },
          400: invalidRequest("size must be at most 1000."),
        },
      },
      async ({ query: { page, size, q } }) => {
        const { tenants, total } = await store.listTenants({ offset: page * size, limit: size, search: q.trim() });
        return ok({ tenants: tenants.map(toRecord), total });
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/operator/tenants",
        tag,
        summary: "Create an account on any tier",
        description: "Works even if sign-up is closed; the tier takes effect at once. Paid tiers need name and email.",
        access: "operator",
        body: m.operatorCreateBody,
        bodyOptional: true,
        bodyExample: { tier: "enterprise", name: "Ada's bank", email: "ada@example.com" },
        responses: {
          201: {
            description: "The account with its password, which is shown only once.",
            schema: m.createdTenant,
            example: m.createdTenantExample,
          },
          400: invalidRequest("email is required on paid tiers.", "field_required"),
        },
      },
      async (request) => {
        const { tenant, password } = await accounts.createForOperator(request.body, operatorOrigin(request));
        return created({ tenant_id: tenant.id, tier: tenant.tier, name: tenant.name, email: tenant.email, password });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/operator/tenants/:id",
        tag,
        summary: "Show an account",
        access: "operator",
        params: path,
        responses: {
          200: {
            description: "The account.",
            schema: detail,
            example: exampleDetail,
          },
          404: m.tenantNotFound,
        },
      },
      async ({ params }) => ok(await toDetail(await accounts.find(params.id))),
    ),

    endpoint(
      {
        method: "PUT",
        path: "/operator/tenants/:id/tier",
        tag,
        summary: "Set the tier of an account",
        description: "Takes effect at once. Webhooks beyond a lower limit stay until the account replaces them.",
        access: "operator",
        params: path,
        body: m.setTierBody,
        bodyExample: { tier: "enterprise" },
        responses: {
          200: changed,
          400: invalidRequest('tier must be "free", "pro", "business" or "enterprise".'),
          404: m.tenantNotFound,
        },
      },
      async (request) => {
        const { params, body } = request;
        const tenant = await accounts.find(params.id);
        return ok(toRecord(await accounts.setTier(tenant, body.tier, operatorOrigin(request))));
      },
    ),

    endpoint(
      {
        method: "PUT",
        path: "/operator/tenants/:id/limits",
        tag,
        summary: "Set the limits of an account",
        description:
          "Whatever its tier includes, now and after an upgrade; null: what the tier includes. What is not named stays as it is. " +
          "Takes effect at once, on every server. Webhooks beyond a lower limit stay until the account replaces them.",
        access: "operator",
        params: path,
        body: setLimitsBody,
        bodyExample: setLimitsExample,
        responses: {
          200: { description: "The updated account.", schema: detail, example: exampleDetail },
          400: invalidRequest("webhooks must be a whole number from 0 to 100, or null for what its tier includes."),
          404: m.tenantNotFound,
        },
      },
      async (request) => {
        const limits = fromLimits(request.body);
        if (Object.keys(limits).length === 0) throw noLimits();
        const tenant = await accounts.find(request.params.id);
        const detail = limitsDetail(request.body);
        const act = { ...operatorOrigin(request), action: "limits.set", detail } as const;
        return ok(await toDetail(await accounts.setLimits(tenant, limits, act)));
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/operator/tenants/:id/suspend",
        tag,
        summary: "Suspend an account",
        description:
          "It cannot submit work, and its deliveries pause until it is resumed. The account reads the reason in its audit.",
        access: "operator",
        params: path,
        body: jsonObject({ reason: v.optional(reason) }),
        bodyOptional: true,
        bodyExample: { reason: "Sends spam." },
        responses: {
          200: changed,
          400: invalidRequest("reason must be at most 500 characters long."),
          404: m.tenantNotFound,
        },
      },
      async (request) => {
        const { params, body } = request;
        const act = { ...operatorOrigin(request), ...(body.reason && { detail: { reason: body.reason } }) };
        return ok(toRecord(await accounts.suspend(await accounts.find(params.id), act)));
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/operator/tenants/:id/resume",
        tag,
        summary: "End the operator's suspension of an account",
        description: "A suspension for payment stays until the outstanding charge succeeds.",
        access: "operator",
        params: path,
        responses: { 200: changed, 404: m.tenantNotFound },
      },
      async (request) =>
        ok(toRecord(await accounts.resume(await accounts.find(request.params.id), operatorOrigin(request)))),
    ),

    endpoint(
      {
        method: "POST",
        path: "/operator/tenants/:id/reset-password",
        tag,
        summary: "Give an account a new password",
        description:
          "Every session of the account ends. With `end_keys`, its API keys and its signing secret are replaced at once as well: " +
          "anyone who had the password may have read them. The account finds the new ones when it signs in.",
        access: "operator",
        params: path,
        body: jsonObject({ end_keys: v.optional(v.boolean("must be true or false"), false) }),
        bodyOptional: true,
        bodyExample: { end_keys: true },
        responses: {
          200: {
            description: "The new password, which is shown only once, and with `end_keys` what was revoked.",
            schema: v.object({
              tenant_id: v.string(),
              password: v.string(),
              ended: v.optional(v.array(v.picklist(ended))),
            }),
            example: { tenant_id: "t5k2m8q0w3r7xa", password: "y7Kd@3mNq8Rw#Tz5Hb2v", ended: [...ended] },
          },
          400: invalidRequest("end_keys must be true or false."),
          404: m.tenantNotFound,
        },
      },
      async (request) => {
        const { params, body } = request;
        const tenant = await accounts.find(params.id);
        const origin = operatorOrigin(request);
        const password = await accounts.resetPassword(tenant, origin);
        if (body.end_keys) await endKeys(tenant, origin);
        return ok({ tenant_id: tenant.id, password, ...(body.end_keys && { ended: [...ended] }) });
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/operator/tenants/:id/view",
        tag,
        summary: "Look at an account as it sees itself",
        description:
          "A session token for the account's dashboard and its reading endpoints, for 30 minutes. It changes nothing and " +
          "shows no secret. It is in the account's audit.",
        access: "operator",
        params: path,
        responses: {
          201: {
            description: "The token.",
            schema: v.object({ tenant_id: v.string(), token: v.string(), expires_in_seconds: v.number() }),
            example: { tenant_id: "t5k2m8q0w3r7xa", token: "eyJ…", expires_in_seconds: viewLifetimeSeconds },
          },
          404: m.tenantNotFound,
        },
      },
      async (request) => {
        const tenant = await accounts.find(request.params.id);
        await store.noteAct(tenant.id, { ...operatorOrigin(request), action: "account.viewed" });
        const token = await sessions.view(tenant);
        return created({ tenant_id: tenant.id, token, expires_in_seconds: viewLifetimeSeconds });
      },
    ),

    endpoint(
      {
        method: "DELETE",
        path: "/operator/tenants/:id",
        tag,
        summary: "Delete an account and all its data",
        access: "operator",
        params: path,
        responses: { 204: { description: "The account is deleted." }, 404: m.tenantNotFound },
      },
      async (request) => {
        await accounts.remove(await accounts.find(request.params.id), operatorOrigin(request));
        return noContent();
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/operator/token/rotate",
        tag,
        summary: "Replace the operator token",
        description: "The old one stops working at once. The new one is also in the data directory.",
        access: "operator",
        responses: {
          200: {
            description: "The new token, which is shown only once.",
            schema: v.object({ operator_token: v.string() }),
            example: { operator_token: "svc_op_5f0c1e7a92b84d3655f0c1e7a92b84d3655f0c1e7a92b84d" },
          },
        },
      },
      async (request) => {
        const token = rotateToken();
        await noteAct({ ...operatorOrigin(request), action: "operator_token.rotated" });
        return ok({ operator_token: token });
      },
    ),
  ];
  return endpoints.map((one) => (one.method === "GET" ? one : withActor(one, log)));
}

const noLimits = () => invalidField("", `must name at least one of ${Object.keys(setLimitsExample).join(", ")}`);

/** Logs every change by the operator, with who made it. */
function withActor(endpoint: ErasedEndpoint, log: Log): ErasedEndpoint {
  return {
    ...endpoint,
    async handle(request: CheckedRequest<"operator", unknown, unknown, unknown>) {
      const reply = await endpoint.handle(request);
      const { id } = (request.params ?? {}) as { id?: string };
      const { tenant_id: made } = (reply.json ?? {}) as { tenant_id?: string };
      log.write("info", "operator.acted", {
        act: `${endpoint.method} ${endpoint.path}`,
        tenantId: id ?? made ?? null,
        by: operatorOrigin(request).via,
        address: request.address,
      });
      return reply;
    },
  };
}
