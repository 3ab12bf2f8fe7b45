import * as v from "valibot";
import type { Config } from "../config.ts";
import { type Pauses, pausable } from "../domain/pauses.ts";
import { plans, tiersAscending } from "../domain/plans.ts";
import type { Tier } from "../domain/tenant.ts";
import { type ErasedEndpoint, endpoint, ok } from "../http/endpoint.ts";
import { anyTier } from "../http/fields.ts";
import { version } from "../version.ts";

export interface AboutRouteDeps {
  config: Pick<Config, "localMode" | "signup" | "payments" | "mail">;
  pauses: Pick<Pauses, "paused">;
  /** Monthly price of each tier, in kobo. */
  prices: Readonly<Record<Tier, number>>;
  /** Known once the server listens. */
  baseUrl(): string;
}

export const about = v.pipe(
  v.object({
    version: v.string(),
    baseUrl: v.pipe(v.string(), v.description("Base of every URL that the server gives out.")),
    mode: v.pipe(
      v.picklist(["local", "public"]),
      v.description("local: only requests from its own machine are served."),
    ),
    signup: v.pipe(v.picklist(["open", "closed"]), v.description("closed: only the operator creates accounts.")),
    payments: v.pipe(
      v.picklist(["sandbox", "paystack", "off"]),
      v.description("sandbox: buying can be tried without real money. off: nothing is sold."),
    ),
    mail: v.pipe(v.boolean(), v.description("Whether a forgotten password can be reset by mail.")),
    paused: v.pipe(v.array(v.picklist(pausable)), v.description("What the operator has paused: deliveries, charges.")),
    limits: v.pipe(
      v.object({ webhooks: v.pipe(v.number(), v.integer()), eventsPerMonth: v.pipe(v.number(), v.integer()) }),
      v.description("Limits of a free account."),
    ),
  }),
  v.title("About"),
);

/** For a server that sells plans. */
export const aboutWithPlans = v.pipe(
  v.object({
    ...about.entries,
    currency: v.literal("NGN"),
    plans: v.array(
      v.object({
        tier: anyTier,
        webhooks: v.pipe(v.number(), v.integer()),
        eventsPerMonth: v.pipe(v.number(), v.integer()),
        priceKobo: v.pipe(
          v.nullable(v.pipe(v.number(), v.integer())),
          v.description("Monthly price in kobo (100 kobo are one naira); null if the operator invoices it."),
        ),
      }),
    ),
  }),
  v.title("About"),
);

const aboutExample = {
  version: "0.1.0",
  baseUrl: "https://relay.example.com",
  mode: "public",
  signup: "open",
  payments: "paystack",
  mail: true,
  paused: [],
  limits: { webhooks: 1, eventsPerMonth: 10_000 },
};

const exampleWithPlans = {
  ...aboutExample,
  currency: "NGN",
  plans: [
    { tier: "free", webhooks: 1, eventsPerMonth: 10_000, priceKobo: 0 },
    { tier: "pro", webhooks: 1, eventsPerMonth: 5_000_000, priceKobo: 1_500_000 },
    { tier: "business", webhooks: 2, eventsPerMonth: 25_000_000, priceKobo: 6_000_000 },
    { tier: "enterprise", webhooks: 3, eventsPerMonth: 100_000_000, priceKobo: null },
  ],
};

/** What somebody without an account needs to know about the server: whether they can get one, and how. */
export function aboutRoutes({ config, pauses, prices, baseUrl }: AboutRouteDeps): ErasedEndpoint[] {
  const isSelling = config.payments.kind !== "off";
  const sold = isSelling && {
    currency: "NGN",
    plans: tiersAscending.map((tier) => ({
      tier,
      ...plans[tier],
      priceKobo: tier === "enterprise" ? null : prices[tier],
    })),
  };
  const answer = isSelling
    ? { schema: aboutWithPlans, example: exampleWithPlans }
    : { schema: about, example: { ...aboutExample, payments: "off" } };
  return [
    endpoint(
      {
        method: "GET",
        path: "/v1/about",
        tag: "Accounts",
        summary: "Show what this server offers",
        description: "What a sign-up page needs to know: what the server offers and how it is set up.",
        access: "none",
        responses: { 200: { description: "What the server offers.", ...answer } },
      },
      () =>
        ok({
          version,
          baseUrl: baseUrl(),
          mode: config.localMode ? "local" : "public",
          signup: config.signup,
          payments: config.payments.kind,
          mail: config.mail !== null,
          paused: pauses.paused(),
          limits: plans.free,
          ...sold,
        }),
    ),
  ];
}
