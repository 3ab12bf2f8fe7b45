import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { register, until } from "../support/api-server.ts";
import { startReceiver } from "../support/receiver.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import { cards, createClockAt, customerOf, goodPassword, signUp, subscribe, visit, withSandbox } from "./customers.ts";

/** Restored and cloned servers, which answer and show everything, and wait for their operator with the rest. */

setDefaultTimeout(120_000);

const receiver = startReceiver();
afterAll(() => receiver.stop());

const paused = (what: string, given: Parameters<typeof startTestApp>[0] = {}) =>
  startTestApp({ ...given, env: { ...given.env, POSTRIDER_PAUSED: what } });

async function resume(server: TestApp, ...words: string[]) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: server.dataDir } });
  const code = await runCommand(["resume", ...words], io);
  return { code, out, err };
}

const events = (server: TestApp, event: string) =>
  server.log.map((line) => JSON.parse(line)).filter((line) => line.event === event);

describe("while deliveries are paused", () => {
  test("events are taken and wait, and go out oldest first when they are resumed", async () => {
    // One at a time, so that the order is seen.
    const server = await paused("deliveries", { env: { POSTRIDER_WEBHOOK_CONCURRENCY: "1" } });
    const tenant = await server.account();
    await register(tenant, `${receiver.url}/order`);
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push((await tenant.ingest({ n })).body.eventId);

    const list = (await tenant.get("/v1/events")).body;
    expect(list.events.map(({ state, attempts }: { state: string; attempts: number }) => [state, attempts])).toEqual(
      Array(5).fill(["PENDING", 0]),
    );
    expect((await server.request("GET", "/readyz")).status).toBe(200);
    expect((await server.request("GET", "/v1/about")).body.paused).toEqual(["deliveries"]);
    expect((await server.request("GET", "/metrics")).text).toContain('postrider_paused{what="deliveries"} 1');
    expect(events(server, "server.paused")).toMatchObject([{ level: "warn", what: "deliveries" }]);

    const [webhook] = (await tenant.get("/v1/tenants/webhooks")).body;
    const tried = await tenant.post(`/v1/tenants/webhooks/${webhook.id}/test`);
    expect([tried.status, tried.body.code]).toEqual([503, "deliveries_paused"]);
    // What will not be there later either is said first.
    const missing = await tenant.post("/v1/tenants/webhooks/no-such/test");
    expect([missing.status, missing.body.code]).toEqual([404, "webhook_not_found"]);
    const replay = await tenant.post("/v1/events/replays/all", { replayGroupId: "again" });
    const { body: queued } = await until(
      () => tenant.get(replay.headers.get("location") ?? ""),
      ({ body }) => body.queued >= 5,
    );
    expect([queued.queued, receiver.requests]).toEqual([5, []]);

    expect(await resume(server, "deliveries")).toMatchObject({ code: 0, out: ["Deliveries have resumed."] });
    const arrived = await receiver.waitFor(5);
    expect(arrived.slice(0, 5).map(({ headers }) => headers.get("service-event-id"))).toEqual(ids);
    expect((await server.request("GET", "/v1/about")).body.paused).toEqual([]);
    expect(events(server, "server.resumed")).toMatchObject([{ what: "deliveries" }]);
    expect((await server.request("GET", "/metrics")).text).toContain('postrider_paused{what="deliveries"} 0');
    // A second time it is no mistake.
    expect(await resume(server)).toMatchObject({
      code: 0,
      out: ["Deliveries were not paused.", "Charges were not paused."],
    });
    await server.stop();
  });
});

describe("while charges are paused", () => {
  test("nobody is charged or asked for money; resumed, what is due is charged", async () => {
    const clock = createClockAt("2031-10-10T09:00:00Z");
    const first = await startTestApp({ clock, env: withSandbox });
    const before = await subscribe(first, cards.good);
    const neighbour = await subscribe(first, cards.good);
    const other = await signUp(first, { tier: "pro" });
    await first.stop({ keepData: true });

    clock.to("2031-10-31T12:00:00Z");
    const server = await paused("charges", { clock, env: withSandbox, dataDir: first.dataDir });
    const customer = await customerOf(server, before.id, goodPassword);
    const upgrade = await customer.upgrade({ tier: "business" });
    expect([upgrade.status, upgrade.body.code]).toEqual([503, "charges_paused"]);
    const card = await customer.post("/v1/tenants/payment-method");
    expect([card.status, card.body.code]).toEqual([503, "charges_paused"]);
    const taken = await customer.post("/v1/tenants/payment-method", { email: neighbour.email });
    expect([taken.status, taken.body.code]).toEqual([400, "email_taken"]);
    const free = await customer.post("/v1/tenants/payment-method", { email: "free-address@example.com" });
    expect([free.status, free.body.code]).toEqual([503, "charges_paused"]);
    expect((await customer.me()).email).toBe(before.email);
    const page = await visit(server, other.paymentUrl);
    expect([page.status, page.text.includes("Payments are paused")]).toEqual([503, true]);
    expect((await customer.charges()).map(({ kind }) => kind)).toEqual(["verification"]);

    expect(await resume(server, "charges")).toMatchObject({ code: 0, out: ["Charges have resumed."] });
    await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
    expect((await visit(server, other.paymentUrl)).status).toBe(302);
    await server.stop();
  });
});

test("what is resumed alone leaves the other paused, and a new start pauses both again", async () => {
  const first = await paused("deliveries,charges");
  expect((await resume(first, "charges")).out).toEqual(["Charges have resumed.", "Deliveries are still paused."]);
  await first.stop({ keepData: true });
  const second = await paused("deliveries,charges", { dataDir: first.dataDir });
  expect((await second.request("GET", "/v1/about")).body.paused).toEqual(["deliveries", "charges"]);
  await second.stop();
});

test("what cannot be noted for the next start stays paused, and says so", async () => {
  const server = await paused("deliveries,charges");
  const held = join(server.dataDir, "held.json");
  const unwritable = `${held}.new`;
  // As after a restore; where the file is written, a folder is in the way.
  writeFileSync(held, '["deliveries","charges"]', { mode: 0o600 });
  mkdirSync(unwritable);
  const refused = await resume(server);
  expect([refused.code, refused.err.join()]).toEqual([1, expect.stringContaining("so deliveries stay paused")]);
  const { body } = await server.request("GET", "/v1/about");
  expect([body.paused, events(server, "server.resumed")]).toEqual([["deliveries", "charges"], []]);
  rmSync(unwritable, { recursive: true });
  expect((await resume(server)).out).toEqual(["Deliveries have resumed.", "Charges have resumed."]);
  expect(existsSync(held)).toBe(false);
  await server.stop();
});

test("a word that is not known is named", async () => {
  const server = await startTestApp();
  const { code, err } = await resume(server, "delivery");
  expect([code, err.join("")]).toEqual([2, expect.stringContaining("postrider resume deliveries")]);
  await server.stop();
});
