import type { NoteAct } from "../audit/note.ts";
import { type AuditAction, byAccount } from "../domain/audit.ts";
import { credentialLimits, tooManySigningKeys } from "../domain/rotation.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { ErasedEndpoint } from "../http/endpoint.ts";
import { created, endpoint, ok } from "../http/endpoint.ts";
import { invalidRequest, refusal } from "../http/error-models.ts";
import { formatIso } from "../lib/iso-time.ts";
import { type AccountHub, announceChange } from "../stream/account-change.ts";
import type { Accounts } from "./accounts.ts";
import type { ApiKeys } from "./api-keys.ts";
import * as c from "./credential-model.ts";
import { tenantNotFound, tenantPath } from "./model.ts";
import type { ShownSecret, SigningKeys } from "./signing-keys.ts";

export interface CredentialRouteDeps {
  accounts: Pick<Accounts, "find">;
  apiKeys: ApiKeys;
  signingKeys: SigningKeys;
  hub: AccountHub;
  noteAct: NoteAct;
}

const keysTag = "API keys";
const signaturesTag = "Signatures";

const secretBody = ({ secret, earlierEndsAt }: ShownSecret) => ({
  secret,
  earlier_secret_expires_at: earlierEndsAt === null ? null : formatIso(earlierEndsAt),
});

/** What authorises ingestion and what proves that a delivery is ours. */
export function credentialRoutes(deps: CredentialRouteDeps): ErasedEndpoint[] {
  const { accounts, apiKeys, signingKeys, hub, noteAct } = deps;

  /** Before the answer, so that nothing is shown without a trace; where nothing can be written, reading still works. */
  const noteShown = (action: AuditAction, { tenant, address }: { tenant: Tenant; address: string }) =>
    noteAct({ ...byAccount(address), action }, tenant.id);

  return [
    endpoint(
      {
        method: "GET",
        path: "/v1/tenants/api-keys",
        tag: keysTag,
        summary: "List the API keys",
        access: "session",
        showsSecret: true,
        responses: {
          200: {
            description: "All keys, newest first, including inactive ones.",
            schema: c.apiKeyRecords,
            example: [c.apiKeyExample],
          },
        },
      },
      async (request) => {
        const records = await apiKeys.list(request.tenant);
        await noteShown("api_key.shown", request);
        return ok(records);
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/api-keys/rotate",
        tag: keysTag,
        summary: "Replace the API key",
        description:
          "Every other active key ends after `grace_period_seconds`, or earlier if it was due to expire before. Without a " +
          "grace period they all end at once.",
        access: "session",
        body: c.rotateApiKeyBody,
        bodyOptional: true,
        bodyExample: { grace_period_seconds: 3600 },
        responses: {
          201: { description: "The new key.", schema: c.apiKeyRecord, example: c.apiKeyExample },
          400: invalidRequest("grace_period_seconds must be at most 604800."),
        },
      },
      async ({ tenant, body, address }) => {
        const record = await apiKeys.rotate(tenant, body.grace_period_seconds, byAccount(address));
        announceChange(hub, tenant, "api_keys");
        return created(record);
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/tenants/:tenantId/jwks.json",
        tag: signaturesTag,
        summary: "Get the public keys that verify a tenant's deliveries",
        description:
          "A JWK set (RFC 7517, RFC 8037). The `Service-Key-Id` header of a delivery is the `kid` of its key.",
        access: "none",
        params: tenantPath,
        responses: {
          200: {
            description: "The keys in use and the next one.",
            schema: c.jwkSet,
            example: c.jwkSetExample,
            headers: { "Cache-Control": "max-age=3600" },
          },
          404: tenantNotFound,
        },
      },
      async ({ params }) => ({
        ...ok(await signingKeys.published(await accounts.find(params.tenantId))),
        headers: { "Cache-Control": "max-age=3600" },
      }),
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/signing-keys/rotate",
        tag: signaturesTag,
        summary: "Replace the signing key",
        description:
          "The new key is published at once and starts signing after `activate_after_seconds`, so that receivers can fetch " +
          "it first. Earlier keys stay published for seven more days.",
        access: "session",
        body: c.rotateSigningKeyBody,
        bodyOptional: true,
        bodyExample: { activate_after_seconds: 86_400 },
        responses: {
          201: { description: "The new key.", schema: c.rotatedSigningKey, example: c.rotatedSigningKeyExample },
          400: invalidRequest("activate_after_seconds must be at most 604800."),
          429: refusal(
            `The account has ${credentialLimits.signingKeys} published signing keys.`,
            tooManySigningKeys(7 * 24 * 60 * 60 * 1000),
          ),
        },
      },
      async ({ tenant, body, address }) => {
        const { activate_after_seconds: after } = body;
        const { key, earlierPublishedUntil } = await signingKeys.rotate(tenant, after, byAccount(address));
        announceChange(hub, tenant, "signing_keys");
        return created({
          kid: key.id,
          activates_at: formatIso(key.activatesAt),
          earlier_published_until: formatIso(earlierPublishedUntil),
        });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/tenants/signing-secret",
        tag: signaturesTag,
        summary: "Show the Standard Webhooks secret",
        showsSecret: true,
        access: "session",
        responses: {
          200: { description: "The secret.", schema: c.signingSecret, example: c.signingSecretExample },
        },
      },
      async (request) => {
        const secret = await signingKeys.secret(request.tenant);
        await noteShown("signing_secret.shown", request);
        return ok(secretBody(secret));
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/signing-secret/rotate",
        tag: signaturesTag,
        summary: "Replace the Standard Webhooks secret",
        description:
          "For seven days, deliveries are also signed with the earlier secret. Only with the latest earlier one: a second rotation ends it for the one before at once.",
        access: "session",
        responses: {
          201: {
            description: "The new secret.",
            schema: c.signingSecret,
            example: { ...c.signingSecretExample, earlier_secret_expires_at: "2026-03-08T12:34:56.789Z" },
          },
        },
      },
      async ({ tenant, address }) => {
        const shown = await signingKeys.rotateSecret(tenant, byAccount(address));
        announceChange(hub, tenant, "signing_secret");
        return created(secretBody(shown));
      },
    ),
  ];
}
