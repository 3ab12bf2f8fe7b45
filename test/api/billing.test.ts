// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, expect } from "bun:test";
import type { TestApp } from "../support/test-app.ts";
import {
  businessKobo,
  type Customer,
  cards,
  createClockAt,
  goodPassword,
  pageBehind,
  pay,
  proKobo,
  signUp,
  signUpFree,
  subscribe,
  withSandbox,
} from "./customers.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/** Rules, sections 4 and 12: what an owner sees of the payments of the account, and nobody else. */

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
}

const clock = createClockAt("2031-10-10T09:00:00Z");
const server = useServer({ clock, env: withSandbox });
const world = (): World => ({ server: server() });

let pending: Awaited<ReturnType<typeof signUp>>;
let paying: Customer;
let pastDue: Customer;
let restored: Customer;
let free: Customer;

beforeAll(async () => {
  paying = await subscribe(server(), cards.good, { tier: "business" });
  pastDue = await subscribe(server(), cards.emptyTomorrow);
  clock.to("2031-10-31T11:00:00Z");
  await Promise.all([paying.logIn(), pastDue.logIn()]);
  await pastDue.whenBilling(({ status }) => status === "past_due");
  await paying.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
  restored = await subscribe(server(), cards.good);
  pending = await signUp(server());
  await pageBehind(server(), pending.paymentUrl);
  free = await signUpFree(server());
});

const time = stringMatching(/^2031-1[0-2]-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const nothing = { amount_kobo: 0, credit_kobo: 0, due_at: null, lines: [] };

/** Nothing that a card can be charged with, and no address that it was verified with. */
const secrets = (customer: Customer) => () => ["SBX_AUTH", "SBX_SIG", "@example.com", customer.id, goodPassword];

const row = (customer: () => Customer, body: unknown): Scenario<World> => ({
  section: "rules 4",
  request: () => customer().get("/v1/tenants/billing"),
  status: 200,
  exact: true,
  body,
  headers: { "Cache-Control": "no-store" },
  never: () => secrets(customer())(),
});

scenarios<World>("GET /v1/tenants/billing", world, {
  "of a free account there is nothing": row(() => free, {
    tier: "free",
    status: "active",
    currency: "NGN",
    price_kobo: 0,
    card: null,
    current_month: nothing,
    payment_url: null,
    past_due_since: null,
    next_attempt_at: null,
    charges: [],
  }),
  "of an account whose card is not verified: the page and its open charge": {
    ...row(
      () => pending,
      () => ({
        tier: "pro",
        status: "pending_verification",
        currency: "NGN",
        price_kobo: proKobo,
        card: null,
        current_month: nothing,
        payment_url: pending.paymentUrl,
        past_due_since: null,
        next_attempt_at: null,
        charges: [
          {
            reference: stringMatching(/^ver-[0-9a-z]{26}$/),
            kind: "verification",
            amount_kobo: 10_000,
            state: "pending",
            reason: null,
            created_at: time,
            completed_at: null,
          },
        ],
      }),
    ),
  },
  "of one that pays: card, month and charges, the newest first": row(() => paying, {
    tier: "business",
    status: "active",
    currency: "NGN",
    price_kobo: businessKobo,
    card: { brand: "visa", last4: "4081", exp_month: "12", exp_year: "2035" },
    current_month: { amount_kobo: 0, credit_kobo: 0, due_at: "2031-11-30T11:00:00.000Z", lines: [] },
    payment_url: null,
    past_due_since: null,
    next_attempt_at: null,
    charges: [
      {
        reference: stringMatching(/^sub-[0-9a-z]+-a1$/),
        kind: "subscription",
        amount_kobo: Math.floor((businessKobo * 22) / 31),
        state: "succeeded",
        reason: null,
        created_at: time,
        completed_at: time,
      },
      {
        reference: stringMatching(/^ver-/),
        kind: "verification",
        amount_kobo: 10_000,
        state: "succeeded",
        reason: null,
        created_at: time,
        completed_at: time,
      },
    ],
  }),
  "of one that is past due: since when, why, and what comes next": row(() => pastDue, {
    tier: "pro",
    status: "past_due",
    currency: "NGN",
    price_kobo: proKobo,
    card: { brand: "visa", last4: "0341", exp_month: "12", exp_year: "2035" },
    current_month: any(Object),
    payment_url: null,
    past_due_since: time,
    next_attempt_at: stringMatching(/^2031-11-01T11:00/),
    charges: [
      {
        reference: stringMatching(/^sub-/),
        kind: "subscription",
        amount_kobo: 1_064_516,
        state: "failed",
        reason: "Declined",
        created_at: time,
        completed_at: time,
      },
      any(Object),
    ],
  }),
  "of one that continues from a backup: the charge of its deletion after that, too": {
    ...row(() => restored, any(Object)),
    exact: false,
    async given() {
      const { store } = server().app;
      const tenant = await store.findTenant(restored.id);
      const accountKey = await store.billingAccountOf(tenant?.key ?? 0);
      const found = {
        kind: "closing",
        reference: "end-1k2m3n-a1",
        processor: "sandbox:test",
        amountKobo: 5_000,
      } as const;
      await store.adoptCharge(accountKey ?? 0, { ...found, transactionId: "7" }, clock.now());
    },
    body: { charges: [{ kind: "closing", amount_kobo: 5_000, state: "succeeded" }, { kind: "verification" }] },
  },
  "of a page on which a card was declined: what the customer was told": {
    ...row(() => pending, any(Object)),
    exact: false,
    async given() {
      await pay(server(), pending.paymentUrl, cards.empty);
      clock.travel(2 * 60_000);
      await pending.whenCharge(({ reason }) => reason !== null);
    },
    body: { status: "pending_verification", charges: [{ state: "pending", reason: "Insufficient funds" }] },
  },
  "without a session": {
    section: "spec: Authentication",
    request: ({ server }) => server.request("GET", "/v1/tenants/billing"),
    status: 401,
    exact: true,
    body: { message: any(String), code: "unauthenticated" },
  },
  "with an API key": {
    section: "spec: Authentication",
    request: ({ server }) => server.request("GET", "/v1/tenants/billing", { token: paying.apiKey }),
    status: 401,
    body: { code: "unauthenticated" },
  },
  "shows the latest 100 charges": {
    section: "rules 12",
    async request() {
      const customer = await subscribe(server(), cards.emptyTomorrow);
      for (let i = 0; i < 110; i += 1) {
        if (i % 10 === 0) clock.travel(61_000);
        const { status } = await customer.upgrade({ tier: "business" });
        expect(status).toBe(402);
      }
      return customer.get("/v1/tenants/billing");
    },
    status: 200,
    then: (_, { body }) => expect(body.charges).toHaveLength(100),
  },
});
