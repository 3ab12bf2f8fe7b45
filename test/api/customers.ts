import { createHmac, hkdfSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { signatureHeader } from "../../src/billing/sandbox/callbacks.ts";
import { createSandbox } from "../../src/billing/sandbox/sandbox.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { createTravelClock, until } from "../support/api-server.ts";
import { type Answer, startTestApp, type TestApp } from "../support/test-app.ts";

/** Customers who pay: over the interface, and with test cards on the pages of the sandbox, as a browser would. */

export { cards } from "../support/sandbox.ts";

/** Takes payments by the sandbox, which is off in tests otherwise. */
export const withSandbox = { POSTRIDER_PAYMENTS: "sandbox" };

export const goodPassword = "Corr3ct#Horse";

/** What pro and business cost a month, in kobo. */
export const proKobo = 1_500_000;
export const businessKobo = 6_000_000;
export const verificationKobo = 10_000;

/** A travel clock that has gone ahead to an instant; a server that begins there has never known another time. */
export function createClockAt(iso: string) {
  const clock = createTravelClock();
  const to = (when: string) => clock.travel(Date.parse(when) - clock.now());
  to(iso);
  return { ...clock, to };
}

export interface Charge {
  reference: string;
  kind: string;
  amount_kobo: number;
  state: string;
  reason: string | null;
  created_at: string;
  completed_at: string | null;
}

/** What `GET /v1/tenants/billing` answers. */
export interface Billing {
  tier: string;
  status: string;
  price_kobo: number;
  card: { brand: string; last4: string; exp_month: string; exp_year: string } | null;
  current_month: { amount_kobo: number; credit_kobo: number; due_at: string | null; lines: unknown[] };
  payment_url: string | null;
  past_due_since: string | null;
  next_attempt_at: string | null;
  charges: Charge[];
}

let customers = 0;

/** An account made on a paid tier, not yet verified. */
export async function signUp(server: TestApp, given: Record<string, unknown> = {}) {
  customers += 1;
  const body = {
    tier: "pro",
    name: `Customer ${customers}`,
    email: `customer-${customers}@example.com`,
    password: goodPassword,
    ...given,
  };
  const created = await server.request("POST", "/v1/tenants", { body });
  if (created.status !== 201) throw new Error(`The account was not made: ${created.text}`);
  const customer = await customerOf(server, created.body.tenant_id, body.password);
  return Object.assign(customer, { email: body.email, created, paymentUrl: String(created.body.payment_url) });
}

/** An account made on the free tier. */
export async function signUpFree(server: TestApp) {
  const { body } = await server.request("POST", "/v1/tenants", { body: {} });
  return customerOf(server, body.tenant_id, body.password);
}

/** An account with a verified card. */
export async function subscribe(server: TestApp, card: string, given: Record<string, unknown> = {}) {
  const customer = await signUp(server, given);
  const paid = await pay(server, customer.paymentUrl, card);
  const next = pathOf(paid.headers.get("location") ?? "");
  if (next.endsWith("/confirm")) await post(server, next, { confirm: "yes" });
  await customer.whenCharge(({ kind, state }) => kind === "verification" && state === "succeeded");
  return customer;
}

/** One who is logged in. Sessions end by travelling: `logIn` begins another one. */
export async function customerOf(server: TestApp, id: string, password: string) {
  let jwt = "";
  const call = (method: string, path: string, body?: unknown) =>
    server.request(method, path, { token: jwt, ...(body !== undefined && { body }) });

  const customer = {
    id,
    get jwt() {
      return jwt;
    },
    apiKey: "",
    get: (path: string) => call("GET", path),
    post: (path: string, body?: unknown) => call("POST", path, body),
    put: (path: string, body?: unknown) => call("PUT", path, body),
    delete: (path: string) => call("DELETE", path),
    ingest: (payload: unknown = {}) =>
      server.request("POST", "/v1/ingest", { token: customer.apiKey, body: { payload } }),
    upgrade: (body: unknown) => call("POST", "/v1/tenants/upgrade", body),
    async logIn() {
      const answer = await server.request("POST", "/v1/tenants/auth/login", { body: { loginId: id, password } });
      if (answer.status !== 200) throw new Error(`The login failed: ${answer.text}`);
      jwt = answer.body.token;
    },
    me: async () => (await call("GET", "/v1/tenants/me")).body,
    billing: async (): Promise<Billing> => (await call("GET", "/v1/tenants/billing")).body,
    /** What anybody is told. */
    status: async (): Promise<string> => (await server.request("GET", `/v1/tenants/${id}/status`)).body.status,
    /** A page on which to verify a card. */
    paymentMethod: async (): Promise<string> => (await call("POST", "/v1/tenants/payment-method")).body.payment_url,
    charges: async (): Promise<Charge[]> => (await customer.billing()).charges,
    /** The charges once one of them is as hoped for. */
    whenCharge: (fits: (charge: Charge) => boolean): Promise<Charge[]> =>
      until(customer.charges, (charges) => charges.some(fits)),
    whenBilling: (holds: (billing: Billing) => boolean): Promise<Billing> => until(customer.billing, holds),
  };
  await customer.logIn();
  customer.apiKey = (await customer.get("/v1/tenants/api-keys")).body[0].key;
  return customer;
}

export type Customer = Awaited<ReturnType<typeof customerOf>>;

// ---------------------------------------------------------------- in the browser

/** Of an address of this server, whatever its host is called. */
export function pathOf(url: string): string {
  const { pathname, search } = new URL(url, "http://localhost");
  return pathname + search;
}

export const visit = (server: TestApp, url: string): Promise<Answer> => server.request("GET", pathOf(url));

/** Posts what a form of a page posts. */
export const post = (server: TestApp, path: string, fields: Record<string, string>): Promise<Answer> =>
  server.request("POST", path, {
    body: new URLSearchParams(fields).toString(),
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
  });

/** The path of the sandbox's page behind a `payment_url`. */
export async function pageBehind(server: TestApp, paymentUrl: string): Promise<string> {
  const { status, headers, text } = await visit(server, paymentUrl);
  if (status !== 302) throw new Error(`There is no page to go to: ${status} ${text}`);
  return pathOf(headers.get("location") ?? "");
}

/** Opens a `payment_url` and pays there; at a careful bank, the answer leads to its page. */
export async function pay(server: TestApp, paymentUrl: string, card: string): Promise<Answer> {
  return post(server, await pageBehind(server, paymentUrl), { card });
}

/** Opens a `payment_url` that leads to the bank, and answers it. */
export async function answerBank(server: TestApp, paymentUrl: string, confirm: "yes" | "no"): Promise<Answer> {
  return post(server, await pageBehind(server, paymentUrl), { confirm });
}

// ---------------------------------------------------------------- behind the scenes

/** The secret from which the sandbox of a server derives its own (`billing/billing.ts`). */
function sandboxSecret({ dataDir }: TestApp): Buffer {
  const masterKey = Buffer.from(readFileSync(join(dataDir, "master-key"), "utf8").trim(), "hex");
  return createHmac("sha256", masterKey).update("sandbox payment processor").digest();
}

/** The signature that the sandbox of a server puts under a callback. */
export function signatureOf(server: TestApp, body: string): string {
  const secret = new Uint8Array(hkdfSync("sha256", sandboxSecret(server), "", "postrider sandbox callbacks", 32));
  return createHmac("sha512", secret).update(body).digest("hex");
}

/** Posts a callback as the sandbox would sign it. */
export const postCallback = (server: TestApp, body: string, signature = signatureOf(server, body)): Promise<Answer> =>
  server.request("POST", "/pay/callback", { body, headers: { [signatureHeader]: signature } });

/** What the sandbox posts once a payment was made, but for the details that nobody reads. */
export const callbackOf = (reference: string) =>
  JSON.stringify({ event: "charge.success", data: { reference, status: "success", amount: 10_000 } });

/** A customer pays on a page, and the callback of it is lost. */
export async function payUnheard(server: TestApp, clock: Clock, page: string, card: string): Promise<void> {
  const sandbox = createSandbox({
    books: server.app.sandboxBooks,
    clock,
    secret: sandboxSecret(server),
    publicUrl: () => server.url,
    postCallback: async () => {},
  });
  const answer = await sandbox.pay(page.split("/").at(-1) ?? "", card);
  if (answer?.page.state !== "paid") throw new Error(`It was not paid: ${answer?.page.reason ?? answer?.problem}`);
}

/** The lines of the log about one kind of thing, parsed. */
export const logged = (server: TestApp, event: string): Record<string, unknown>[] =>
  server.log.map((line) => JSON.parse(line)).filter((line) => line.event === event);

// ---------------------------------------------------------------- at a month's end

/** A server of its own at the end of October, with a customer on pro since the 10th. */
export async function startAtMonthEnd(card: string, env: Record<string, string> = {}) {
  const clock = createClockAt("2031-10-10T09:00:00Z");
  const server = await startTestApp({ clock, env: { ...withSandbox, ...env } });
  const customer = await subscribe(server, card);
  const go = async (iso: string) => {
    clock.to(iso);
    await customer.logIn();
  };
  await go("2031-10-31T11:00:00Z");
  return { clock, server, customer, go, [Symbol.asyncDispose]: () => server.stop() };
}

/** Pro from the 10th to the 31st of October. */
export const monthKobo = 1_064_516;
export const subscriptions = async (customer: Customer) =>
  (await customer.charges()).filter(({ kind }) => kind === "subscription");

/** The charges of the month's end, once `n` of them have failed. */
export const whenFailed = (customer: Customer, n: number) =>
  until(
    () => subscriptions(customer),
    (charges) => charges.filter(({ state }) => state === "failed").length === n,
  );
