import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Hooks, startHooks, until } from "../support/api-server.ts";
import { type SeededAccount, seedAccount } from "../support/seeded-account.ts";
import { useServer } from "./scenario.ts";

/** A server as strangers meet it, on which a free account may send ten deliveries at once and one a second. */
let hooks: Hooks;
const server = useServer({
  env: {
    POSTRIDER_PUBLIC_URL: "https://relay.example.com",
    POSTRIDER_SIGNUP: "closed",
    POSTRIDER_ALLOW_TARGETS: "127.0.0.0/8",
    POSTRIDER_DELIVERY_RATE: "free=1",
    POSTRIDER_REPLAYS_PER_DAY: "2",
  },
});
beforeAll(async () => {
  hooks = await startHooks();
});
afterAll(() => hooks.stop());

const ingest = ({ apiKey }: SeededAccount, count: number) =>
  server().request("POST", "/v1/ingest/batch", {
    token: apiKey,
    body: { events: Array.from({ length: count }, (_, n) => ({ payload: { n } })) },
  });

test("what is above the rate of the plan waits and is not lost; another plan's rate holds at once", async () => {
  const hook = hooks.hook();
  const account = await seedAccount(server(), { webhooks: [hook.url] });
  expect((await ingest(account, 40)).status).toBe(202);
  await hook.whenReceived(10);
  const pending = () => server().request("GET", "/v1/events/state/PENDING", { token: account.jwt });
  const { body } = await until(pending, ({ body: page }) => page.total <= 30);
  expect(body.total).toBeGreaterThan(25);
  expect(body.events[0]).toMatchObject({ state: "PENDING", attempts: 0, errorReason: null });

  const beside = hooks.hook();
  const other = await seedAccount(server(), { webhooks: [beside.url] });
  await ingest(other, 5);
  await beside.whenReceived(5);

  await server().request("PUT", `/operator/tenants/${account.id}/tier`, {
    token: server().operatorToken,
    body: { tier: "enterprise" },
  });
  await hook.whenReceived(40);
  await server().app.whenIdle();
  expect(new Set(hook.received.map(({ headers }) => headers["service-event-id"])).size).toBe(40);
  expect((await pending()).body.total).toBe(0);
}, 120_000);

test("a webhook test takes a token too, and goes at once", async () => {
  const hook = hooks.hook();
  const account = await seedAccount(server(), { webhooks: [hook.url] });
  const [webhook] = (await server().request("GET", "/v1/tenants/webhooks", { token: account.jwt })).body;
  const testOnce = () => server().request("POST", `/v1/tenants/webhooks/${webhook.id}/test`, { token: account.jwt });
  const answers = await Promise.all(Array.from({ length: 8 }, testOnce));
  expect(answers.map(({ body }) => body.statusCode)).toEqual(Array(8).fill(200));
  await ingest(account, 10);
  await hook.whenReceived(10);
  const { body } = await server().request("GET", "/v1/events/state/PENDING", { token: account.jwt });
  expect(body.total).toBeGreaterThan(5);
}, 120_000);

test("more bulk replays than a day allows are told when the next one may begin", async () => {
  const account = await seedAccount(server(), { webhooks: [hooks.hook().url] });
  const start = (kind: string) =>
    server().request("POST", `/v1/events/replays/${kind}`, { token: account.jwt, body: { replayGroupId: "again" } });
  expect([(await start("all")).status, (await start("failed")).status]).toEqual([202, 202]);
  const { status, body, headers } = await start("all");
  expect([status, body.code]).toEqual([429, "too_many_replays_today"]);
  const seconds = Number(headers.get("Retry-After"));
  expect(seconds > 86_000 && seconds <= 86_400).toBe(true);
});
