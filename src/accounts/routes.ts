import { paymentNote } from "../billing/model.ts";
import { byAccount } from "../domain/audit.ts";
import { orderedQuotaOf, quotaOf, webhooksAllowed } from "../domain/limits.ts";
import { keptFor, type UsualAges } from "../domain/retention.ts";
import { paymentsUnavailable, suspendedByOperator } from "../domain/standing.ts";
import { statusOf, suspensionCauses, type Tenant } from "../domain/tenant.ts";
import { utcMonth } from "../domain/tenant-state.ts";
import { createClientLimit, tooManyRequestsAnswer } from "../http/client-limit.ts";
import { created, type ErasedEndpoint, endpoint, noContent, ok } from "../http/endpoint.ts";
import { failure, invalidRequest, refusal } from "../http/error-models.ts";
import type { Clock } from "../lib/clock.ts";
import { formatIso } from "../lib/iso-time.ts";
import type { Store } from "../store/store.ts";
import { type Accounts, signUpClosed, tooManyAccounts, tooManyUpgrades } from "./accounts.ts";
import * as m from "./model.ts";
import type { StorageBytes } from "./storage-bytes.ts";

export interface AccountRouteDeps {
  store: Pick<Store, "usage" | "refusedEvents">;
  storageBytes: StorageBytes;
  clock: Clock;
  /** How long events are kept. */
  usualAges: UsualAges & { readonly retentionMaxBytes: number | null };
  accounts: Accounts;
  /** Local mode has no limits by address. */
  localMode: boolean;
  /** Called when somebody asks for the status; they may be waiting for a verification. */
  onPoll(tenant: Tenant): void;
}

const tag = "Accounts";

/** Enough for ten people behind one address whose pages ask every second; too few to find an id by guessing. */
const statusChecksPerMinute = 600;

const notOffered = refusal(
  "This server does not offer that tier, or cannot at the moment; nothing was changed.",
  paymentsUnavailable(),
);

/** The account itself: create it, read it, upgrade it, delete it. */
export function accountRoutes(deps: AccountRouteDeps): ErasedEndpoint[] {
  const { store, storageBytes, clock, usualAges, accounts, localMode, onPoll } = deps;
  return [
    endpoint(
      {
        method: "POST",
        path: "/v1/tenants",
        tag,
        summary: "Create a tenant",
        description:
          "On the free tier every field is optional and generated when missing. Other tiers, where this server " +
          "offers them, require name, email and password.",
        access: "none",
        body: m.createTenantBody,
        bodyOptional: true,
        bodyExample: m.createTenantExample,
        limit: ({ address }) => accounts.checkSignUpRate(address),
        responses: {
          201: {
            description: "The account. On the free tier it includes the password, which is shown only once.",
            schema: m.createdTenant,
            example: m.createdTenantExample,
          },
          400: invalidRequest("password must have at least one digit.", "weak_password"),
          403: refusal("Sign-up is closed on this server.", signUpClosed()),
          429: refusal("Too many accounts were created from this address.", tooManyAccounts(3600)),
          503: notOffered,
        },
      },
      async ({ body, address }) => {
        const { tenant, password, paymentUrl } = await accounts.signUp(body, address);
        const { id, tier, name, email } = tenant;
        const shown = paymentUrl === null ? { password } : { payment_url: paymentUrl, payment_note: paymentNote };
        return created({ tenant_id: id, tier, name, email, ...shown });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/tenants/me",
        tag,
        summary: "Show the account",
        access: "session",
        responses: {
          200: { description: "The account.", schema: m.accountInfo, example: m.accountInfoExample },
        },
      },
      async ({ tenant }) => {
        const now = clock.now();
        const kept = keptFor(tenant, usualAges);
        const [{ eventsThisMonth }, refused] = await Promise.all([
          store.usage(tenant.key, now),
          store.refusedEvents(tenant.key, utcMonth(now)),
        ]);
        return ok({
          tenant_id: tenant.id,
          tenant_name: tenant.name,
          tier: tenant.tier,
          max_events_per_month: orderedQuotaOf(tenant),
          email: tenant.email,
          enforced_tier: tenant.enforcedTier,
          // Before the first verification the account takes no events, but its webhooks can be set up.
          enforced_events_per_month: tenant.enforcedTier === null ? 0 : quotaOf(tenant),
          enforced_webhooks: webhooksAllowed(tenant),
          events_this_month: eventsThisMonth,
          storage_bytes: await storageBytes(tenant.key),
          status: statusOf(tenant),
          suspended_by: suspensionCauses(tenant),
          created_at: formatIso(tenant.createdAt),
          retention_seconds: toSeconds(kept.events),
          retention_payloads_seconds: toSeconds(kept.payloads),
          retention_by_size: usualAges.retentionMaxBytes !== null,
          refused_this_month: refused,
        });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/v1/tenants/:tenantId/status",
        tag,
        summary: "Check whether a tenant is active",
        description: "Poll it until the account is active.",
        access: "none",
        params: m.tenantPath,
        ...(!localMode && { limit: createClientLimit(clock, statusChecksPerMinute) }),
        responses: {
          200: { description: "The status.", schema: m.publicStatus, example: { status: "active" } },
          404: m.tenantNotFound,
          429: tooManyRequestsAnswer,
        },
      },
      async ({ params }) => {
        const tenant = await accounts.find(params.tenantId);
        onPoll(tenant);
        const status = statusOf(tenant);
        // Third parties need not know of an outstanding charge (rules, section 4).
        return ok({ status: status === "past_due" ? "active" : status });
      },
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/upgrade",
        sells: true,
        tag,
        summary: "Upgrade to a higher tier",
        description:
          "From the free tier, email and password are required and become the login. Downgrades are not supported.",
        access: "session",
        body: m.upgradeBody,
        bodyExample: m.upgradeExample,
        limit: ({ tenant }) => accounts.checkUpgradeRate(tenant),
        responses: {
          200: {
            description: "The upgrade is complete and paid.",
            schema: m.upgraded,
            example: m.upgradedAndPaidExample,
          },
          202: {
            description: "The upgrade is applied; a card must be verified to activate it.",
            schema: m.upgraded,
            example: m.upgradedExample,
          },
          400: invalidRequest(
            'tier must be higher than "business", the current tier; downgrades are not supported.',
            "not_an_upgrade",
          ),
          402: failure(
            "The saved card was declined, or an earlier charge is outstanding.",
            "payment_declined",
            "The saved card could not be charged (Insufficient funds); verify another card with POST /v1/tenants/payment-method and retry the request.",
          ),
          403: refusal("The operator has suspended the account.", suspendedByOperator()),
          429: refusal("Too many upgrade attempts.", tooManyUpgrades(60)),
          503: failure(
            "The payment processor did not respond. It is safe to retry; nothing is charged twice.",
            "payment_unknown",
            "The payment processor has not confirmed whether the card was charged; retry the request, nothing is charged twice.",
          ),
        },
      },
      async ({ tenant, body, address }) => {
        const { tenant: upgraded, paymentUrl, message } = await accounts.upgrade(tenant, body, address);
        return {
          status: paymentUrl === null ? 200 : 202,
          json: {
            tenant_id: upgraded.id,
            tier: upgraded.tier,
            included_events: orderedQuotaOf(upgraded),
            payment_status: paymentUrl === null ? "paid" : "pending",
            message,
            ...(paymentUrl !== null && { payment_url: paymentUrl }),
          },
        };
      },
    ),

    endpoint(
      {
        method: "DELETE",
        path: "/v1/tenants",
        tag,
        summary: "Delete the account and all its data",
        description:
          "This cannot be undone. Attempts in flight are aborted, and every credential stops working at once.",
        access: "session",
        responses: { 204: { description: "The account is deleted." } },
      },
      async ({ tenant, address }) => {
        await accounts.remove(tenant, byAccount(address));
        return noContent();
      },
    ),
  ];
}

const toSeconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);
