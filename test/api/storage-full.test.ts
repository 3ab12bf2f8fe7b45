import { afterAll, beforeAll, expect } from "bun:test";
import { unavailable } from "../../src/domain/errors.ts";
import { batchOf, gate, type Hooks, ingestOne, outcome, register, startHooks, until } from "../support/api-server.ts";
import { testOnSqlite as test } from "../support/server-data.ts";
import { startTestApp, type TestAccount } from "../support/test-app.ts";
import { provenSections, useServer } from "./scenario.ts";

provenSections.add("rules 3").add("rules 6");

let hooks: Hooks;
const held = gate();
// Before the server's own: it waits for what is in flight.
afterAll(() => {
  held.open();
  hooks.stop();
});
/** A disk of 2 MB. SQLite itself says when it is full. */
const server = useServer({ maxPageCount: 500 });
beforeAll(async () => {
  hooks = await startHooks();
});

const payload = { text: "x".repeat(500) };
/** It needs pages of its own. A small one of another account may still find room on a page that is there. */
const ofPages = { text: "x".repeat(20_000) };

/** Batches until one is refused; returns how many events were accepted, and the refusal. */
async function fill(account: TestAccount, size: number) {
  for (let accepted = 0; ; accepted += size) {
    const answer = await batchOf(server(), account, size, payload);
    if (answer.status !== 202) return { accepted, answer };
  }
}

test("a full disk: 503 without effect, and it goes on by itself when there is room", async () => {
  const [tenant, big] = [await server().account(), await server().account()];
  const hook = hooks.hook(held.answer);
  await register(tenant, hook.url);
  const inFlight = await ingestOne(tenant);
  await hook.whenReceived(1);

  let stored = 0;
  for (const size of [200, 20, 1]) {
    const { accepted, answer } = await fill(big, size);
    stored += accepted;
    expect([answer.status, answer.body]).toEqual([
      503,
      { message: "The server's disk is full; retry later.", code: "storage_full" },
    ]);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    // Nothing of the refused batch is there: no event, no record, no use of the quota.
    const { body } = await big.get("/v1/events?size=1000");
    expect([body.total, (await big.get("/v1/tenants/me")).body.events_this_month]).toEqual([stored, stored]);
  }
  expect(stored).toBeGreaterThan(500);

  // A key that was refused is not remembered, neither now nor later.
  expect((await tenant.ingest(ofPages, { "Idempotency-Key": "full" })).status).toBe(503);
  expect((await tenant.get("/v1/events")).body.total).toBe(1);
  // What is in flight ends, and is not forgotten.
  held.open();

  // Room: an account with its events goes.
  expect((await big.delete("/v1/tenants")).status).toBe(204);
  const { body } = await until(
    () => tenant.ingest({ other: true }, { "Idempotency-Key": "full" }),
    ({ status }) => status === 202,
  );
  expect(await outcome(tenant, body.eventId)).toMatchObject({ state: "DELIVERED", attempts: 1 });
  expect(await outcome(tenant, inFlight)).toMatchObject({ state: "DELIVERED", attempts: 1 });
  expect(hook.received.map(({ headers }) => headers["service-event-id"])).toEqual([inFlight, body.eventId]);
  expect((await server().request("GET", "/readyz")).status).toBe(200);
}, 120_000);

test("an account can be deleted although there is no room for its entry in the audit", async () => {
  const full = await startTestApp({
    wrapStore: (store) => ({
      ...store,
      deleteTenant: (key, now, act) =>
        act ? Promise.reject(unavailable("The disk is full.", "storage_full")) : store.deleteTenant(key, now),
    }),
  });
  const account = await full.account();
  expect((await account.delete("/v1/tenants")).status).toBe(204);
  expect((await account.get("/v1/tenants/me")).status).toBe(401);
  expect(full.log.filter((line) => line.includes('"audit.not_noted"'))).toHaveLength(1);
  await full.stop();
});
