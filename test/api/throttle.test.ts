import { afterAll, beforeAll, expect, test } from "bun:test";
import { batchOf, type Hook, type Hooks, ingestOne, register, startHooks } from "../support/api-server.ts";
import { startTestApp } from "../support/test-app.ts";
import { provenSections } from "./scenario.ts";

/** Rules, section 14: what a pause and limits of a webhook do to its deliveries, over real HTTP. */
provenSections.add("rules 14");

let hooks: Hooks;
beforeAll(async () => {
  hooks = await startHooks();
});
afterAll(() => hooks.stop());

const idsAt = ({ received }: Hook) => received.map(({ headers }) => headers["service-event-id"]);

test("what is paused waits, also through a restart, and goes out oldest first; a test goes at once", async () => {
  const env = { POSTRIDER_WEBHOOK_CONCURRENCY: "1" };
  const first = await startTestApp({ env });
  const account = await first.account();
  await account.setTier("business");
  const [hook, other] = [hooks.hook(200), hooks.hook(200)];
  await register(account, { webhook_url: hook.url, paused: true }, { webhook_url: other.url });
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.push(await ingestOne(account, { n }));
  expect(idsAt({ ...other, received: await other.whenReceived(5) })).toEqual(ids);
  await first.app.whenIdle();

  const [{ id }] = (await account.get("/v1/tenants/webhooks")).body;
  expect((await account.post(`/v1/tenants/webhooks/${id}/test`)).body.statusCode).toBe(200);
  expect(hook.received).toHaveLength(1);
  hook.received.length = 0;

  await first.stop({ keepData: true });
  const second = await startTestApp({ env, dataDir: first.dataDir });
  const again = {
    ...account,
    put: (path: string, body: unknown) => second.request("PUT", path, { token: account.jwt, body }),
    ingest: (payload: unknown) => second.request("POST", "/v1/ingest", { token: account.apiKey, body: { payload } }),
  };
  for (let n = 5; n < 8; n += 1) ids.push(await ingestOne(again, { n }));
  await other.whenReceived(8);
  await second.app.whenIdle();
  expect(idsAt(hook)).toEqual([]);

  await register(again, { webhook_url: hook.url, paused: false }, { webhook_url: other.url });
  expect(idsAt({ ...hook, received: await hook.whenReceived(8) })).toEqual(ids);
  await second.app.whenIdle();
  await second.stop();
});

test("a webhook gets no more a second, and no more at once, than it says; others get all at once", async () => {
  const server = await startTestApp();
  const account = await server.account();
  await account.setTier("business");
  const slow = hooks.hook(200);
  let underWay = 0;
  let most = 0;
  const narrow = hooks.hook((response) => {
    underWay += 1;
    most = Math.max(most, underWay);
    setTimeout(() => {
      underWay -= 1;
      response.writeHead(200).end();
    }, 5);
  });
  await register(account, { webhook_url: slow.url, rate_limit: 20 }, { webhook_url: narrow.url, max_concurrency: 2 });
  const begin = performance.now();
  await batchOf(server, account, 30);
  await narrow.whenReceived(30);
  const last = (await slow.whenReceived(30)).at(-1)?.at ?? 0;
  await server.app.whenIdle();
  expect(most).toBe(2);
  // Two go at once, and 28 wait for their token, 50 ms each.
  expect(last - begin).toBeGreaterThanOrEqual(1_400 - 1);
  expect(slow.received).toHaveLength(30);
  await server.stop();
});
