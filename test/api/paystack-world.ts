import { until } from "../support/api-server.ts";
import type { StandInCard, StandInTransaction } from "../support/paystack-answers.ts";
import { paystackCards } from "../support/paystack-answers.ts";
import { type PaystackStandIn, startPaystackStandIn } from "../support/paystack-stand-in.ts";
import { isOnPostgres } from "../support/server-data.ts";
import { type Answer, startTestApp, type TestApp } from "../support/test-app.ts";
import { type Customer, createClockAt, logged, pathOf, signUp, visit } from "./customers.ts";

/** A server that takes payments by Paystack, whose part the stand-in plays; and what a customer does between the two. */

export const secretKey = "sk_test_example";

const withPaystack = (url: string) => ({
  POSTRIDER_PAYMENTS: "paystack",
  POSTRIDER_PAYSTACK_SECRET_KEY: secretKey,
  POSTRIDER_PAYSTACK_URL: url,
});

export interface PaystackWorld {
  readonly server: TestApp;
  readonly paystack: PaystackStandIn;
  readonly clock: ReturnType<typeof createClockAt>;
  /** Another server takes over what this one knows; `url` is where it believes Paystack to be. */
  restart(url?: string): Promise<TestApp>;
  /** Another server goes on with what the folder knows, as if that were all. */
  restore(dataDir: string, env?: Record<string, string>): Promise<TestApp>;
  /** Fails the test when a request was not as Paystack documents it. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface PaystackWorldOptions {
  /** When it begins. @default a day in the middle of a month */
  readonly at?: string;
  /** The customer's browser never returns from the hosted page. @default false */
  readonly isBrowserLost?: boolean;
}

export async function startPaystackWorld({
  at = "2031-10-10T09:00:00Z",
  isBrowserLost = false,
}: PaystackWorldOptions = {}): Promise<PaystackWorld> {
  const clock = createClockAt(at);
  const paystack = await startPaystackStandIn({
    secretKey,
    browse: async (url) => isBrowserLost || server.request("GET", pathOf(url)),
  });
  const begin = async (url: string, dataDir?: string, env?: Record<string, string>) => {
    const started = await startTestApp({ clock, env: { ...withPaystack(url), ...env }, ...(dataDir && { dataDir }) });
    paystack.callbackUrl = `${started.url}/pay/callback`;
    return started;
  };
  let server = await begin(paystack.url);
  return {
    get server() {
      return server;
    },
    paystack,
    clock,
    async restart(url = paystack.url) {
      await server.stop({ keepData: true });
      server = await begin(url, server.dataDir);
      return server;
    },
    async restore(dataDir, env) {
      if (dataDir !== server.dataDir) await server.stop();
      server = await begin(paystack.url, dataDir, env);
      return server;
    },
    async [Symbol.asyncDispose]() {
      paystack.faults.release();
      await server.stop();
      await paystack.stop();
    },
  };
}

/** The hosted page behind a `payment_url`. */
export async function hostedPage({ server }: PaystackWorld, paymentUrl: string): Promise<string> {
  const { status, headers, text } = await visit(server, paymentUrl);
  if (status !== 302) throw new Error(`There is no page to go to: ${status} ${text}`);
  return headers.get("location") ?? "";
}

/** An account with a verified card. */
export async function subscribeAt(
  world: PaystackWorld,
  { card = paystackCards.visa, tier = "pro" }: { card?: StandInCard; tier?: string } = {},
) {
  const customer = await signUp(world.server, { tier });
  await world.paystack.pay(await hostedPage(world, customer.paymentUrl), card);
  await customer.whenBilling(({ status }) => status === "active");
  return customer;
}

const prefixes = { verification: "ver-", upgrade: "upg-", subscription: "sub-", closing: "end-" };

/** What Paystack knows of one kind of charge, the oldest first. */
export const known = ({ paystack }: PaystackWorld, kind: keyof typeof prefixes): StandInTransaction[] =>
  [...paystack.transactions.values()].filter(({ reference }) => reference.startsWith(prefixes[kind]));

/** How often money was taken for all charges of a kind. */
export const timesCharged = (world: PaystackWorld, kind: keyof typeof prefixes): number =>
  known(world, kind).reduce((sum, transaction) => sum + transaction.timesCharged, 0);

export const retryAfterMs = ({ headers }: Answer): number => Number(headers.get("retry-after")) * 1000;

/** A client that repeats its request for as long as it is told to, and waits as long as it is told to. */
export async function repeatUpgrade({ clock }: PaystackWorld, customer: Customer, first: Answer): Promise<Answer> {
  let answer = first;
  for (let times = 0; answer.status === 503 && times < 5; times += 1) {
    clock.travel(retryAfterMs(answer));
    answer = await customer.upgrade({ tier: "business" });
  }
  return answer;
}

/**
 * So many looks in a row nothing is asked, until the server waits for time to pass. The first is where the last answer came; then
 * the server has to have its turn to read it, and a database elsewhere takes several.
 */
const quietLooks = isOnPostgres ? 10 : 2;

/**
 * Has time pass in steps until it holds; what the server waits for may begin between any two of them. It stands still while
 * the server asks one thing after the other: each would run into its time limit.
 */
export function travelUntil(
  { clock, paystack }: PaystackWorld,
  stepMs: number,
  holds: () => boolean,
): Promise<boolean> {
  let asked = paystack.requests.length;
  let quiet = 0;
  return until(() => {
    if (holds()) return true;
    quiet = paystack.requests.length === asked && paystack.underWay === 0 ? quiet + 1 : 0;
    asked = paystack.requests.length;
    if (quiet < quietLooks) return false;
    clock.travel(stepMs);
    quiet = 0;
    return false;
  }, Boolean);
}

/** Whether the server has heard that a charge of this kind is paid. */
export const isSettled = ({ server }: PaystackWorld, kind: keyof typeof prefixes): boolean =>
  logged(server, "payment.settled").some((line) => line.kind === kind);
