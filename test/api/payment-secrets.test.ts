import { expect, test } from "bun:test";
import { look } from "../support/server-data.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import {
  answerBank,
  cards,
  createClockAt,
  goodPassword,
  pageBehind,
  pay,
  post,
  signUp,
  signUpFree,
  visit,
  withSandbox,
} from "./customers.ts";
import { provenSections } from "./scenario.ts";

/** Rules, sections 3 and 12: a whole story of payments, and where its secrets must not be. */

provenSections.add("rules 3").add("rules 12");

const dayMs = 24 * 60 * 60 * 1000;

interface Seen {
  path: string;
  text: string;
}

/** A server of which every answer is kept, with its headers. */
async function startWatched() {
  const clock = createClockAt("2031-10-10T09:00:00Z");
  const app = await startTestApp({ clock, env: withSandbox });
  const seen: Seen[] = [];
  const server: TestApp = {
    ...app,
    async request(method, path, options) {
      const answer = await app.request(method, path, options);
      seen.push({ path, text: `${JSON.stringify([...answer.headers])}\n${answer.text}` });
      return answer;
    },
  };
  return { clock, server, seen };
}

test("no token of a card, no number, no address of a page and no e-mail gets where it does not belong", async () => {
  const { clock, server, seen } = await startWatched();
  const customer = await signUp(server);
  const streams: Promise<string>[] = [];
  const openStream = async () => {
    const stream = await fetch(`${server.url}/v1/stream`, { headers: { Authorization: `Bearer ${customer.jwt}` } });
    streams.push(stream.text());
  };
  await openStream();
  const urls = [customer.paymentUrl];
  const pages: string[] = [];

  // Declined, not for later use, then a bank that asks.
  pages.push(await pageBehind(server, customer.paymentUrl));
  await pay(server, customer.paymentUrl, cards.declined);
  await pay(server, customer.paymentUrl, cards.onceOnly);
  await customer.whenCharge(({ state }) => state === "refunding");
  const asked = await pay(server, customer.paymentUrl, cards.careful);
  pages.push(asked.headers.get("location") ?? "");
  await post(server, asked.headers.get("location") ?? "", { confirm: "yes" });
  await customer.whenBilling(({ status }) => status === "active");
  await customer.ingest({ n: 1 });

  // An upgrade that is confirmed, another card, a month's end that fails, and one more card.
  clock.travel(2 * dayMs);
  await customer.logIn();
  await openStream();
  const { body } = await customer.upgrade({ tier: "business" });
  urls.push(body.payment_url);
  pages.push(await pageBehind(server, body.payment_url));
  await visit(server, (await answerBank(server, body.payment_url, "yes")).headers.get("location") ?? "");
  await customer.whenBilling(({ status }) => status === "active");
  urls.push(await customer.paymentMethod());
  await pay(server, urls.at(-1) ?? "", cards.emptyTomorrow);
  await customer.whenBilling(({ card }) => card?.last4 === "0341");
  clock.to("2031-10-31T11:00:00Z");
  await customer.logIn();
  await openStream();
  await customer.whenBilling(({ status }) => status === "past_due");
  urls.push(await customer.paymentMethod());
  await pay(server, urls.at(-1) ?? "", cards.good);
  await customer.whenBilling(({ status }) => status === "active");
  for (const path of ["/v1/tenants/me", "/v1/tenants/webhooks", "/v1/events", "/v1/stats"]) await customer.get(path);
  await server.request("GET", "/openapi.json");
  for (const path of ["", `/${customer.id}`]) {
    await server.request("GET", `/operator/tenants${path}`, { token: server.operatorToken });
  }

  const free = await signUpFree(server);
  const upgrade = await free.upgrade({ tier: "pro", email: "story@example.com", password: goodPassword });
  urls.push(upgrade.body.payment_url);
  const metrics = await server.request("GET", "/metrics");
  await customer.delete("/v1/tenants");
  const told = (await Promise.all(streams)).join("\n");
  expect(told).toContain("account.changed");

  // What the store knows of the cards, to look for it elsewhere.
  const known = await look<{ token: string; signature: string }>(server, "select token, signature from sandbox_card");
  expect(known).toHaveLength(4);

  const numbers = Object.values(cards).flatMap((number) => [number, number.replaceAll(" ", "")]);
  const cardSecrets = ["SBX_AUTH_", "SBX_SIG_", ...known.flatMap(({ token, signature }) => [token, signature])];
  const last = (url: string) =>
    new URL(url, server.url).pathname.split("/").find((part) => /^[0-9a-z]{26}$/.test(part)) ?? "";
  const addresses = [...urls, ...pages].map(last);
  expect(addresses).not.toContain("");

  const logLines = server.log.join("\n");
  const never = (text: string, secrets: readonly string[]) => secrets.filter((secret) => text.includes(secret));
  const personal = ["@example.com", "Customer ", goodPassword, customer.apiKey, customer.jwt];
  expect(never(logLines, [...cardSecrets, ...numbers, ...addresses, ...personal])).toEqual([]);
  expect(logLines).not.toMatch(/\b(?:ver|upg|sub|end)-[0-9a-z]{8}/);
  expect(never(metrics.text, [...cardSecrets, ...numbers, ...addresses, ...personal, customer.id])).toEqual([]);
  expect(never(told, [...cardSecrets, ...numbers, ...addresses, ...personal])).toEqual([]);
  for (const { path, text } of seen) {
    // The sandbox's own pages offer the numbers of its test cards.
    const isOffer = path.startsWith("/pay/sandbox/");
    expect([path, never(text, isOffer ? cardSecrets : [...cardSecrets, ...numbers])]).toEqual([path, []]);
  }
  await server.stop();
}, 120_000);

test("what a card is charged with rests encrypted, but on the sandbox's own side", async () => {
  const { server } = await startWatched();
  const customer = await signUp(server);
  await pay(server, customer.paymentUrl, cards.good);
  await customer.whenBilling(({ status }) => status === "active");
  const [row] = await look<{ sealed: Uint8Array }>(server, "select sealed from saved_card");
  const rest: string[] = [];
  for (const table of ["saved_card", "charge", "billing_account", "invoice", "card_verification"]) {
    rest.push(JSON.stringify(await look(server, `select * from ${table}`)));
  }
  const sealed = Buffer.from(row?.sealed ?? []).toString("latin1");
  expect(sealed.length).toBeGreaterThan(30);
  for (const text of [sealed, ...rest]) expect(text).not.toMatch(/SBX_AUTH_|@example\.com|4084084084084081/);
  await server.stop();
});
