import * as v from "valibot";
import type { Tenant } from "../domain/tenant.ts";
import { failure } from "../http/error-models.ts";
import { anyTier, emailAddress, suspendedBy, tenantStatus } from "../http/fields.ts";
import { jsonObject, text, withoutZero } from "../http/validation.ts";
import { webhookEntries } from "../webhooks/model.ts";
import { maxPasswordBytes, passwordRules, passwordSchema } from "./password.ts";

/** Bodies of the accounts endpoints. These descriptions check requests, type the handlers and make up the document. */

// ---------------------------------------------------------------- fields

/** What a tenant may choose; the operator assigns enterprise. */
const selfServiceTier = v.picklist(
  ["free", "pro", "business"],
  'must be "free", "pro" or "business"; "enterprise" is assigned by the operator of this server',
);

const upgradeTier = v.picklist(
  ["pro", "business"],
  'must be "pro" or "business"; "enterprise" is assigned by the operator of this server',
);

const displayName = v.pipe(text(200), v.regex(/\S/, "must not be blank"), withoutZero);

/** Checked by `checkPassword`, which names every rule that is not met. */
const newPassword = v.pipe(v.string("must be a string"), v.metadata({ description: passwordRules, ...passwordSchema }));

const givenPassword = v.pipe(
  v.string("must be a string"),
  v.nonEmpty("must not be empty"),
  v.maxBytes(maxPasswordBytes, "must have at most 1,024 bytes"),
);

export const tenantPath = v.object({ tenantId: v.string() });

// ---------------------------------------------------------------- errors

export const tenantNotFound = failure("The tenant does not exist.", "tenant_not_found", "The tenant does not exist.");

// ---------------------------------------------------------------- create

export const createTenantBody = v.pipe(
  jsonObject({
    tier: v.optional(selfServiceTier, "free"),
    name: v.optional(displayName),
    email: v.optional(emailAddress),
    password: v.optional(newPassword),
    webhooks: v.optional(webhookEntries, []),
  }),
  v.title("NewTenant"),
);

export const createTenantExample = {
  tier: "free",
  name: "Ada's shop",
  webhooks: [{ webhook_url: "https://example.com/hooks", name: "Orders" }],
};

export const createdTenant = v.pipe(
  v.object({
    tenant_id: v.string(),
    tier: anyTier,
    name: v.string(),
    email: v.string(),
    password: v.optional(v.pipe(v.string(), v.description("Free tier only. Shown only once."))),
    payment_url: v.optional(
      v.pipe(v.string(), v.description("Paid tiers only. The page on which to verify the card.")),
    ),
    payment_note: v.optional(v.string()),
  }),
  v.title("CreatedTenant"),
);

export const createdTenantExample = {
  tenant_id: "t5k2m8q0w3r7xa",
  tier: "free",
  name: "Sandbox Amber Falcon 42",
  email: "sandbox+t5k2m8q0w3r7xa@postrider.invalid",
  password: "y7Kd@3mNq8Rw#Tz5Hb2v",
};

// ---------------------------------------------------------------- account

const refusedCount = (why: string) => v.pipe(v.number(), v.integer(), v.description(why));

export const refusedThisMonth = v.pipe(
  v.object({
    quota: refusedCount("The month's quota was used up (429)."),
    inactive: refusedCount("The account was suspended, or not active yet (402 or 403)."),
    invalid: refusedCount("The request broke a rule or was too large (400, 413, 415 or 422)."),
  }),
  v.description(
    "Events refused in this calendar month, UTC. A request that could not be read counts as one event, every repetition counts again, and a 503 does not count. A crash may lose the counts of the last second.",
  ),
);

export const accountInfo = v.pipe(
  v.object({
    tenant_id: v.string(),
    tenant_name: v.string(),
    tier: anyTier,
    max_events_per_month: v.pipe(v.number(), v.integer()),
    email: v.string(),
    enforced_tier: v.pipe(
      v.nullable(anyTier),
      v.description(
        "The tier whose limits apply now: until a change to another one is complete, the previous one. Null while no tier is in force.",
      ),
    ),
    enforced_events_per_month: v.pipe(
      v.number(),
      v.integer(),
      v.description(
        "The quota that applies now: that of the tier in force, or the one that the operator has set. 0 while no tier is in force.",
      ),
    ),
    enforced_webhooks: v.pipe(
      v.number(),
      v.integer(),
      v.description(
        "How many webhooks the account may have: as many as its tier includes, or as the operator has set.",
      ),
    ),
    events_this_month: v.pipe(v.number(), v.integer(), v.description("Events accepted in this calendar month, UTC.")),
    storage_bytes: v.pipe(
      v.nullable(v.pipe(v.number(), v.integer())),
      v.description(
        "Storage taken by the account's events: a close estimate, up to a few minutes old. Null while a large account is measured for the first time.",
      ),
    ),
    status: tenantStatus,
    suspended_by: v.pipe(
      suspendedBy,
      v.description("Why the account is suspended: `operator` has suspended it, or a `payment` is outstanding."),
    ),
    created_at: v.string(),
    retention_seconds: v.pipe(
      v.nullable(v.number()),
      v.description(
        "How long an event is kept after its ingestion; longer only while its deliveries have not ended. Null: for ever.",
      ),
    ),
    retention_payloads_seconds: v.pipe(
      v.nullable(v.number()),
      v.description("How long its payload is kept, without which it cannot be delivered again. Null: for ever."),
    ),
    retention_by_size: v.pipe(
      v.boolean(),
      v.description(
        "Whether the oldest events are removed earlier when the events of all accounts take too much space.",
      ),
    ),
    refused_this_month: refusedThisMonth,
  }),
  v.title("Tenant"),
);

export const accountInfoExample = {
  tenant_id: "t5k2m8q0w3r7xa",
  tenant_name: "Ada's shop",
  tier: "free",
  max_events_per_month: 10_000,
  email: "ada@example.com",
  enforced_tier: "free",
  enforced_events_per_month: 10_000,
  enforced_webhooks: 1,
  events_this_month: 137,
  storage_bytes: 81_432,
  status: "active",
  suspended_by: [],
  created_at: "2026-03-01T12:34:56.789Z",
  retention_seconds: 2_592_000,
  retention_payloads_seconds: 604_800,
  retention_by_size: false,
  refused_this_month: { quota: 0, inactive: 0, invalid: 2 },
};

export const publicStatus = v.object({ status: v.picklist(["active", "pending_verification", "suspended"]) });

export const upgradeBody = jsonObject({
  tier: upgradeTier,
  email: v.optional(emailAddress),
  password: v.optional(newPassword),
});

export const upgradeExample = { tier: "pro", email: "ada@example.com", password: "Corr3ct#Horse" };

export const upgraded = v.pipe(
  v.object({
    tenant_id: v.string(),
    tier: anyTier,
    included_events: v.pipe(v.number(), v.integer()),
    payment_status: v.picklist(["paid", "pending"]),
    message: v.string(),
    payment_url: v.optional(v.string()),
  }),
  v.title("Upgrade"),
);

export const upgradedAndPaidExample = {
  tenant_id: "t5k2m8q0w3r7xa",
  tier: "pro",
  included_events: 5_000_000,
  payment_status: "paid",
  message: "The upgrade is complete and paid.",
};

export const upgradedExample = {
  tenant_id: "t5k2m8q0w3r7xa",
  tier: "pro",
  included_events: 5_000_000,
  payment_status: "pending",
  message: "Verify a card to activate your plan: open payment_url. The verification charges 100 NGN once.",
  payment_url: "https://relay.example.com/pay/8d0f4nq2c6t1",
};

// ---------------------------------------------------------------- sessions

export const loginBody = jsonObject({ loginId: text(254), password: givenPassword });

export const loginExample = { loginId: "t5k2m8q0w3r7xa", password: "y7Kd@3mNq8Rw#Tz5Hb2v" };

export const forgotPasswordBody = jsonObject({ loginId: text(254) });

export const resetPasswordBody = jsonObject({ token: text(100), new_password: newPassword });

export const resetTokenExample = "8d0f4nq2c6t1x5v9b3m7k1j5h9g3f7d1s5a9p3y7";

export const authenticated = v.pipe(
  v.object({
    status: v.literal("authenticated"),
    token: v.pipe(v.string(), v.description("A JWT, valid for two hours.")),
    tenant_id: v.string(),
    tenant_name: v.string(),
    tier: anyTier,
  }),
  v.title("Session"),
);

export const authenticatedExample = {
  status: "authenticated",
  token: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ0NWsybThxMHczcjd4YSJ9.c2lnbmF0dXJl",
  tenant_id: "t5k2m8q0w3r7xa",
  tenant_name: "Ada's shop",
  tier: "free",
};

/** The response to a login, a renewal and a password change. */
export const authenticatedAs = (tenant: Tenant, token: string) => ({
  status: "authenticated",
  token,
  tenant_id: tenant.id,
  tenant_name: tenant.name,
  tier: tenant.tier,
});

export const logoutBody = jsonObject({ all: v.optional(v.boolean("must be true or false"), false) });

export const changePasswordBody = jsonObject({ current_password: givenPassword, new_password: newPassword });

export const changePasswordExample = { current_password: "y7Kd@3mNq8Rw#Tz5Hb2v", new_password: "Corr3ct#Horse" };

// ---------------------------------------------------------------- operator

export const operatorCreateBody = jsonObject({
  tier: v.optional(anyTier, "free"),
  name: v.optional(displayName),
  email: v.optional(emailAddress),
  password: v.optional(newPassword),
  webhooks: v.optional(webhookEntries, []),
});

export const setTierBody = jsonObject({ tier: anyTier });

export type CreateTenantRequest = v.InferOutput<typeof createTenantBody>;
export type OperatorCreateRequest = v.InferOutput<typeof operatorCreateBody>;
export type UpgradeRequest = v.InferOutput<typeof upgradeBody>;
