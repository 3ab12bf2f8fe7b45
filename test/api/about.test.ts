import { describe } from "bun:test";
import { version } from "../../package.json" with { type: "json" };
import type { TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/** Beyond the specification: what a page for visitors has to know. The plans are those of rules, section 4. */

interface World {
  server: TestApp;
}

const plans = [
  { tier: "free", webhooks: 1, eventsPerMonth: 10_000, priceKobo: 0 },
  { tier: "pro", webhooks: 1, eventsPerMonth: 5_000_000, priceKobo: 1_500_000 },
  { tier: "business", webhooks: 2, eventsPerMonth: 25_000_000, priceKobo: 6_000_000 },
  { tier: "enterprise", webhooks: 3, eventsPerMonth: 100_000_000, priceKobo: null },
];

const limits = { webhooks: 1, eventsPerMonth: 10_000 };

const paystackKey = "sk_test_0123456789abcdef";

/** The whole answer of a server, to anybody. */
const says = (body: Record<string, unknown> | ((world: World) => unknown), section: string): Scenario<World> => ({
  section,
  request: ({ server }) => server.request("GET", "/v1/about"),
  status: 200,
  exact: true,
  body,
  headers: { "Cache-Control": "no-store" },
  never: ({ server }) => [server.operatorToken, server.dataDir, paystackKey],
});

describe("as it comes", () => {
  const server = useServer({ env: { POSTRIDER_PAYMENTS: "auto" } });
  scenarios<World>("GET /v1/about", () => ({ server: server() }), {
    "local, open, with the payment sandbox": says(
      ({ server }: World) => ({
        version,
        baseUrl: server.url.replace("127.0.0.1", "localhost"),
        mode: "local",
        signup: "open",
        payments: "sandbox",
        mail: false,
        paused: [],
        limits,
        currency: "NGN",
        plans,
      }),
      "rules 1",
    ),
  });
});

describe("in public", () => {
  const server = useServer({
    env: {
      POSTRIDER_PUBLIC_URL: "https://relay.example.com",
      POSTRIDER_SIGNUP: "closed",
      POSTRIDER_PAYMENTS: "paystack",
      POSTRIDER_PAYSTACK_SECRET_KEY: paystackKey,
      POSTRIDER_PRICE_PRO: "20000",
      POSTRIDER_PRICE_BUSINESS: "75000",
    },
  });
  const [free, pro, business, enterprise] = plans;
  scenarios<World>("GET /v1/about", () => ({ server: server() }), {
    "closed, with prices of its own": says(
      {
        version,
        baseUrl: "https://relay.example.com",
        mode: "public",
        signup: "closed",
        payments: "paystack",
        mail: false,
        paused: [],
        limits,
        currency: "NGN",
        plans: [free, { ...pro, priceKobo: 2_000_000 }, { ...business, priceKobo: 7_500_000 }, enterprise],
      },
      "rules 4",
    ),
  });
});

describe("without payments", () => {
  const server = useServer({ env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com", POSTRIDER_PAYMENTS: "auto" } });
  scenarios<World>("GET /v1/about", () => ({ server: server() }), {
    "there are no plans and no prices": says(
      {
        ...{ version, baseUrl: "https://relay.example.com", mode: "public", signup: "open", payments: "off" },
        ...{ paused: [], limits, mail: false },
      },
      "rules 12",
    ),
  });
});
