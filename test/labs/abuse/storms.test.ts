import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { useServer } from "../../api/scenario.ts";
import { type Hook, type Hooks, ingestOne, register, startHooks, until } from "../../support/api-server.ts";
import { heldUpMs } from "../../support/patience.ts";
import type { Answer, TestAccount } from "../../support/test-app.ts";

/**
 * Calls that an account may make, far too often: what is beyond a limit is refused and changes nothing, what the server
 * holds for it has an end, and another tenant's events go on being delivered. The full sizes are in `bun run abuse`.
 */

let hooks: Hooks;
afterAll(() => hooks.stop());
const server = useServer();
let bystander: TestAccount;
let hook: Hook;

beforeAll(async () => {
  hooks = await startHooks();
  bystander = await server().account();
  hook = hooks.hook();
  await register(bystander, hook.url);
});

/** Runs a storm, and delivers another tenant's events one by one meanwhile. */
async function storm(times: number, ask: (n: number) => Promise<Answer>): Promise<Answer[]> {
  let isOver = false;
  const answers = Promise.all(Array.from({ length: times }, (_, n) => ask(n))).finally(() => {
    isOver = true;
  });
  const before = hook.received.length;
  while (!isOver) {
    const at = performance.now();
    const arrived = hook.whenReceived(hook.received.length + 1);
    await ingestOne(bystander, {});
    await arrived;
    expect(performance.now() - at).toBeLessThan(heldUpMs);
  }
  expect(hook.received.length).toBeGreaterThan(before);
  return answers;
}

const tally = (answers: readonly Answer[]): Record<number, number> =>
  Object.fromEntries([...Map.groupBy(answers, ({ status }) => status)].map(([status, all]) => [status, all.length]));

test("of 700 single replays 600 are made; the others leave no trace and say when there is room", async () => {
  const account = await server().account();
  const target = hooks.hook();
  await register(account, target.url);
  const eventId = await ingestOne(account);
  const label = "x".repeat(1_000);
  const answers = await storm(700, () => account.post("/v1/events/replays/single", { eventId, replayGroupId: label }));
  expect(tally(answers)).toEqual({ 202: 600, 429: 100 });
  for (const { status, headers, body } of answers) {
    if (status !== 429) continue;
    const seconds = Number(headers.get("Retry-After"));
    expect([body.code, seconds > 0 && seconds <= 60]).toEqual(["too_many_single_replays", true]);
  }
  expect((await account.get("/v1/events/replays?size=1")).body.total).toBe(600);
  await server().app.whenIdle();
  const [record] = (await account.get(`/v1/events/${eventId}`)).body;
  expect(record.state).toBe("DELIVERED");
  // One record was overtaken again and again; what went out is what it counts.
  expect(target.received).toHaveLength(record.attempts);
}, 120_000);

test("of single replays with labels of 60 KB ten are made in a minute", async () => {
  const account = await server().account();
  const target = hooks.hook();
  await register(account, target.url);
  const eventId = await ingestOne(account);
  const label = "x".repeat(60_000);
  const answers = await storm(20, () => account.post("/v1/events/replays/single", { eventId, replayGroupId: label }));
  const taken = tally(answers)[202] ?? 0;
  expect(taken).toBeGreaterThanOrEqual(8);
  expect(taken).toBeLessThanOrEqual(10);
  expect((await account.get("/v1/events/replays?size=1")).body.total).toBe(taken);
}, 120_000);

test("of 100 bulk replays eleven are taken, and cancelling them makes room", async () => {
  const account = await server().account();
  const held = hooks.hook(() => {});
  await register(account, held.url);
  await ingestOne(account);
  await held.whenReceived(1);
  const start = () => account.post("/v1/events/replays/all", { replayGroupId: "storm" });
  const answers = await storm(100, start);
  expect(tally(answers)).toEqual({ 202: 11, 429: 89 });
  expect(new Set(answers.filter(({ status }) => status === 429).map(({ body }) => body.code))).toEqual(
    new Set(["too_many_replays"]),
  );
  const { replays, total } = (await account.get("/v1/events/replays")).body;
  expect(total).toBe(11);
  for (const { id } of replays) await account.delete(`/v1/events/replays/${id}`);
  const unfinished = await until(
    async () => (await account.get("/v1/events/replays")).body.replays,
    (all: { status: string }[]) => all.filter(({ status }) => status === "waiting").length === 0,
  );
  expect(unfinished).toHaveLength(11);
  expect((await start()).status).toBe(202);
}, 120_000);

test("of 2,000 new lists of webhooks 300 are taken; no row but the last one's is left, and the next event goes there", async () => {
  const account = await server().account();
  const targets = Array.from({ length: 2_000 }, () => hooks.hook());
  const answers = await storm(2_000, (n) =>
    account.put("/v1/tenants/webhooks", [{ webhook_url: targets[n]?.url, name: `${n}` }]),
  );
  expect(tally(answers)).toEqual({ 200: 300, 429: 1_700 });
  for (const { status, headers, body } of answers) {
    if (status !== 429) continue;
    const seconds = Number(headers.get("Retry-After"));
    expect([body.code, seconds > 0 && seconds <= 60]).toEqual(["too_many_webhook_changes", true]);
  }
  const [last, ...others] = (await account.get("/v1/tenants/webhooks")).body;
  expect(others).toEqual([]);
  const database = new Database(join(server().dataDir, databaseFile), { readonly: true });
  const rows = database.query(
    "select webhook.id from webhook join tenant on tenant.key = tenant_key where tenant.id = ?",
  );
  expect(rows.all(account.id)).toEqual([{ id: last.id }]);
  database.close();
  const eventId = await ingestOne(account);
  await targets.find(({ url }) => url === last.url)?.whenReceived(1);
  expect((await account.get(`/v1/events/${eventId}`)).body).toHaveLength(1);
}, 120_000);

test("of 150 new signing keys 99 are published beside the first, and the others are told to wait for seven days", async () => {
  const account = await server().account();
  const answers = await storm(150, () =>
    account.post("/v1/tenants/signing-keys/rotate", { activate_after_seconds: 0 }),
  );
  expect(tally(answers)).toEqual({ 201: 99, 429: 51 });
  const week = 7 * 24 * 60 * 60;
  for (const { status, body, headers } of answers) {
    if (status !== 429) continue;
    const seconds = Number(headers.get("Retry-After"));
    expect([body.code, seconds > week - 60 && seconds <= week]).toEqual(["too_many_signing_keys", true]);
  }
  const { keys } = (await server().request("GET", `/v1/tenants/${account.id}/jwks.json`)).body;
  expect(keys).toHaveLength(100);
  expect((await bystander.post("/v1/tenants/signing-keys/rotate")).status).toBe(201);
}, 120_000);

test("500 new secrets leave two that sign, and no delivery's header grows", async () => {
  const account = await server().account();
  const target = hooks.hook();
  await register(account, target.url);
  const answers = await storm(500, () => account.post("/v1/tenants/signing-secret/rotate"));
  expect(tally(answers)).toEqual({ 201: 500 });
  await ingestOne(account);
  const [received] = await target.whenReceived(1);
  const signatures = String(received?.headers["webhook-signature"]).split(" ");
  expect(signatures.map((signature) => signature.split(",")[0])).toEqual(["v1", "v1", "v1a"]);
}, 120_000);

test("no storm left a defect in the log", () => {
  expect(server().log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});
