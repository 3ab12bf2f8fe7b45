import * as v from "valibot";
import { byAccount } from "../domain/audit.ts";
import { DomainError, invalid } from "../domain/errors.ts";
import { paymentsUnavailable } from "../domain/standing.ts";
import type { Tenant, Tier } from "../domain/tenant.ts";
import { paysByCard } from "../domain/verifications.ts";
import { createClientLimit } from "../http/client-limit.ts";
import { type ErasedEndpoint, endpoint, ok, type Reply } from "../http/endpoint.ts";
import { failure, invalidRequest, refusal } from "../http/error-models.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";
import * as m from "./model.ts";
import {
  cancelledPage,
  emailRefusedPage,
  expiredPage,
  notInUsePage,
  pausedPage,
  returnedPage,
  unavailablePage,
  unknownPage,
  verifiedPage,
} from "./pages.ts";
import type { PayPage } from "./pay-page.ts";
import type { Payments } from "./payments.ts";
import type { Prices } from "./usage.ts";

export interface BillingRouteDeps {
  store: Pick<Store, "billingAccountOf" | "books" | "chargeHistory">;
  clock: Clock;
  log: Log;
  prices: Prices;
  /** Null: this server takes no payments. */
  payments: Payments | null;
}

const tag = "Billing";

/** The page behind a `payment_url` must not be a way to guess tokens, nor to keep the processor busy. */
const visitsPerMinute = 60;

/** Callbacks are a few kilobytes. */
const maxCallbackBytes = 1024 * 1024;
const shownCharges = 100;

/** Paying: the card, the month so far, the hosted page and the processor's callbacks. */
export function billingRoutes({ store, clock, log, prices, payments }: BillingRouteDeps): ErasedEndpoint[] {
  const limitVisits = createClientLimit(clock, visitsPerMinute);

  async function showBilling(tenant: Tenant): Promise<Reply> {
    if (!payments) throw paymentsUnavailable();
    const accountKey = await store.billingAccountOf(tenant.key);
    const nothing = { lines: [], totalKobo: 0 };
    if (accountKey === null) {
      return ok(m.toBilling({ tenant, prices, books: null, month: nothing, history: [], paymentUrl: null }));
    }
    const books = await store.books(accountKey);
    const month = await payments.invoicing.soFar(books.account, clock.now());
    const history = await store.chargeHistory(accountKey, shownCharges);
    const paymentUrl = books.verification && payments.paymentUrl(books.verification.token);
    return ok(m.toBilling({ tenant, prices, books, month, history, paymentUrl }));
  }

  return [
    endpoint(
      {
        method: "GET",
        path: "/v1/tenants/billing",
        sells: true,
        tag,
        summary: "Show the plan, the card, the charges and this month's usage",
        access: "session",
        responses: {
          200: { description: "The billing state.", schema: m.billing, example: m.billingExample },
          503: withoutPayments,
        },
      },
      ({ tenant }) => showBilling(tenant),
    ),

    endpoint(
      {
        method: "POST",
        path: "/v1/tenants/payment-method",
        sells: true,
        tag,
        summary: "Get a page on which to verify a card",
        description:
          "On paid tiers, for the first card or a new one, and on any tier while a charge is outstanding. The URL stays the " +
          "same until a card is verified. While a bank waits for a confirmation, this puts a page for another card in the " +
          "place of the bank's; reading `payment_url` in `GET /v1/tenants/billing` does not. `email` replaces the account's " +
          "e-mail address and login, in case the payment processor does not accept the current one.",
        access: "session",
        body: m.paymentMethodBody,
        bodyOptional: true,
        bodyExample: { email: "ada@example.com" },
        responses: {
          200: { description: "The page.", schema: m.paymentMethod, example: m.paymentMethodExample },
          400: invalidRequest(
            "A free account has nothing to pay; POST /v1/tenants/upgrade changes the plan.",
            "no_paid_plan",
          ),
          429: failure(
            "The e-mail address was changed too often; one that is taken counts, too.",
            "too_many_email_changes",
            "An account may change its e-mail address at most 10 times an hour; retry after the number of seconds in Retry-After.",
          ),
          503: withoutPayments,
        },
      },
      async ({ tenant, body, address }) => {
        if (!payments) throw paymentsUnavailable();
        if (!paysByCard(tenant)) throw noPaidPlan(tenant.tier);
        return ok({
          payment_url: await payments.requestCard(tenant, byAccount(address), body.email),
          payment_note: m.paymentNote,
        });
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/pay/return",
        tag: "Pages",
        summary: "Where the processor sends the browser after a payment",
        access: "none",
        limit: limitVisits,
        query: v.object({ reference: v.optional(v.string()), trxref: v.optional(v.string()) }),
        responses: { 200: { description: "A page that reveals nothing about any account.", contentType: "text/html" } },
      },
      ({ query }) => {
        if (!payments) return notInUsePage(200);
        const reference = query.reference ?? query.trxref;
        // The visit proves nothing (anybody can make it), so all it does is trigger a look-up.
        if (reference && isOurs(reference)) {
          payments.returned(reference).catch((error: unknown) => {
            log.write("warn", "payment.return_failed", {
              error: messageOf(error),
            });
          });
        }
        return returnedPage();
      },
    ),

    endpoint(
      {
        method: "GET",
        path: "/pay/cancelled",
        tag: "Pages",
        summary: "Where the processor sends the browser when the customer gives up",
        access: "none",
        responses: { 200: { description: "The page.", contentType: "text/html" } },
      },
      () => (payments ? cancelledPage() : notInUsePage(200)),
    ),

    endpoint(
      {
        method: "GET",
        path: "/pay/:token",
        tag: "Pages",
        summary: "Go to the hosted payment page",
        access: "none",
        limit: limitVisits,
        params: v.object({ token: v.string() }),
        responses: { 302: { description: "To the processor." }, 200: { description: "The card is verified." } },
      },
      async ({ params }) => (payments ? toReply(await payments.openPage(params.token)) : notInUsePage(503)),
    ),

    endpoint(
      {
        method: "POST",
        path: "/pay/callback",
        tag: "Pages",
        summary: "Receive a callback from the payment processor",
        access: "none",
        body: "bytes",
        maxBodyBytes: maxCallbackBytes,
        responses: { 200: { description: "Taken." } },
      },
      async ({ body, headers }) => {
        const callback = payments?.processor.readCallback(body, headers) ?? null;
        if (!payments || !callback) throw badSignature();
        const { kind, reference } = callback;
        if (kind === "dispute") log.write("error", "payment.disputed", { reference });
        if (reference !== null && isOurs(reference)) {
          // Requested again in time, but not because of a callback: it may be a repetition, and the next refund under way.
          if (kind === "refund_failed") log.write("error", "payment.refund_failed", { reason: refundStuck });
          // Stored before it is answered: the processor repeats only what is not answered with 200.
          await payments.lookUpSoon(reference);
        }
        return ok({ status: "received" });
      },
    ),
  ];
}

const withoutPayments = refusal("This server takes no payments.", paymentsUnavailable());

const isOurs = (reference: string) => /^(?:ver|upg|sub|end)-[0-9a-z-]{8,60}$/.test(reference);

function toReply(page: PayPage): Reply {
  switch (page.kind) {
    case "go":
      return { status: 302, headers: { Location: page.url, "Referrer-Policy": "no-referrer" } };
    case "verified":
      return verifiedPage();
    case "expired":
      return expiredPage();
    case "not_found":
      return unknownPage();
    case "email_refused":
      return emailRefusedPage();
    case "paused":
      return pausedPage();
    case "unavailable":
      return unavailablePage(page.retryAfterSeconds);
  }
}

const refundStuck = "The processor reports that it failed or needs attention; see the refund in its dashboard";

const badSignature = () =>
  new DomainError({
    kind: "unauthenticated",
    code: "bad_signature",
    message: "The callback's signature is invalid.",
  });

const noPaidPlan = (tier: Tier) =>
  invalid(
    tier === "free"
      ? "A free account has nothing to pay; POST /v1/tenants/upgrade changes the plan."
      : "An enterprise account is invoiced by the operator of this server and needs no card.",
    "no_paid_plan",
  );
