import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { until } from "../support/api-server.ts";
import { overwritePages, type PageType, pagesOf } from "../support/damaged-database.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { testOnSqlite as test } from "../support/server-data.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";

/** A page of the database that the disk has lost spoils what it holds and nothing else. */

/** So many that their records have several pages: to split a page, SQLite reads those beside it, and may meet the damage. */
const smallEvents = 600;
const events = smallEvents + 1;
const filler = "x".repeat(600);
const large = "y".repeat(30_000);

let isDown = false;
let receiver: Receiver;
beforeAll(() => {
  receiver = startReceiver({ answer: () => new Response(null, { status: isDown ? 503 : 204 }) });
});
afterAll(() => receiver.stop());

const folders: string[] = [];
const apps: TestApp[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop({ keepData: true });
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function started(dataDir: string): Promise<TestApp> {
  const app = await startTestApp({ dataDir, env: { POSTRIDER_RETRY_SCHEDULE: "500ms" } });
  apps.push(app);
  return app;
}

interface Abandoned {
  dataDir: string;
  own: { id: string; password: string };
  neighbour: { id: string; password: string };
}

const made = new Map<string, Promise<Abandoned>>();
afterAll(async () => {
  for (const { dataDir } of await Promise.all(made.values())) rmSync(dataDir, { recursive: true });
});

/** The folder of a server that has ended: an account with 601 events, of which one is large, and a neighbour with one. */
async function abandoned(state: "DELIVERED" | "PENDING"): Promise<Abandoned> {
  const model = made.get(state) ?? make(state);
  made.set(state, model);
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-damage-"));
  folders.push(dataDir);
  cpSync((await model).dataDir, dataDir, { recursive: true });
  return { ...(await model), dataDir };
}

async function make(state: "DELIVERED" | "PENDING"): Promise<Abandoned> {
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-damage-"));
  isDown = state === "PENDING";
  const app = await startTestApp({ dataDir, env: { POSTRIDER_RETRY_SCHEDULE: "1h" } });
  const accounts = [];
  for (const count of [smallEvents, 0]) {
    const account = await app.account({ webhooks: [{ webhook_url: `${receiver.url}/${count}`, name: "" }] });
    await account.ingest({ n: count, large: count === 0 ? "" : large });
    const batch = Array.from({ length: count }, (_, n) => ({ payload: { n, filler } }));
    if (count > 0) {
      const headers = { Authorization: `Bearer ${account.apiKey}` };
      await app.request("POST", "/v1/ingest/batch", { body: { events: batch }, headers });
    }
    accounts.push({ id: account.id, password: account.password });
  }
  if (!isDown) await app.app.whenIdle();
  await app.stop({ keepData: true });
  isDown = false;
  const client = new Database(join(dataDir, databaseFile));
  client.run("update delivery set next_attempt_at = 1 where state = 0");
  client.close();
  const [own, neighbour] = accounts;
  if (!own || !neighbour) throw new Error("there are two accounts");
  return { dataDir, own, neighbour };
}

/** Not the last of them, which is where the next rows go. */
function damage(dataDir: string, name: string, type: PageType, byte?: number): void {
  const [first, ...others] = pagesOf(dataDir, name, type);
  if (first === undefined || others.length === 0) throw new Error(`${name} has too few pages to damage one`);
  overwritePages(dataDir, [first], byte);
}

const readRecords = async (account: { get(path: string): Promise<{ status: number; body: { events: Listed[] } }> }) => {
  const { status, body } = await account.get("/v1/events?size=1000");
  expect(status).toBe(200);
  return body.events;
};

interface Listed {
  eventId: string;
  state: string;
  errorReason: string | null;
  errorCode: string | null;
  originalPayload: unknown;
  unreadable?: true;
}

const history: [string, string, PageType, number?][] = [
  ["a page of events", "event", "leaf"],
  ["a page of events that is all zeros", "event", "leaf", 0],
  ["a page of a large payload", "event", "overflow"],
  ["a page of records", "delivery", "leaf"],
];

describe.each(history)("%s that is damaged", (_name, table, type, byte) => {
  test("is told in the list, and the rest of it is as it was", async () => {
    const { dataDir, own, neighbour } = await abandoned("DELIVERED");
    damage(dataDir, table, type, byte);
    const app = await started(dataDir);
    const account = await app.signIn(own.id, own.password);
    const records = await readRecords(account);
    const lost = records.filter(({ unreadable }) => unreadable);
    expect([records.length, lost.length > 0, lost.length < events]).toEqual([events, true, true]);
    expect(records.map(({ state }) => state)).toEqual(Array(events).fill("DELIVERED"));
    for (const { originalPayload } of lost) expect(originalPayload).toBeNull();
    const whole = records.filter(({ unreadable }) => !unreadable);
    for (const { originalPayload } of whole) expect(originalPayload).toHaveProperty("n");

    const [unreadable] = lost;
    const single = await account.get(`/v1/events/${unreadable?.eventId}`);
    expect([single.status, single.body]).toEqual([200, [unreadable]]);
    expect((await account.get("/v1/events?payload=false&size=1000")).body.events).toHaveLength(events);
    expect((await account.ingest({ after: true })).status).toBe(202);
    expect((await app.request("GET", "/readyz")).status).toBe(200);
    await app.app.whenIdle();
    expect((await readRecords(account))[0]).toMatchObject({ state: "DELIVERED", originalPayload: { after: true } });
    expect(await readRecords(await app.signIn(neighbour.id, neighbour.password))).toHaveLength(1);
  });

  test("stops no other delivery, and what was to be delivered of it fails or is set aside, once in the log", async () => {
    const { dataDir, own, neighbour } = await abandoned("PENDING");
    damage(dataDir, table, type, byte);
    const app = await started(dataDir);
    await receiver.waitFor(
      ({ path, json }) =>
        path === `/${smallEvents}` && (json() as { payload: { n: number } }).payload.n === smallEvents - 1,
    );
    const account = await app.signIn(own.id, own.password);
    const named = () =>
      app.log.filter((line) => /"The (event|delivery) .* cannot be read: its page in the database/.test(line)).length;
    const cannotBeRead = ({ unreadable }: Listed) => unreadable === true;
    const isPending = ({ state }: Listed) => state === "PENDING";
    // Not when it is idle: a look at what is due that met the damage is made again a little later.
    const records = await until(
      () => readRecords(account),
      (all) => {
        const [setAside, failed] = table === "event" ? [0, all.filter(cannotBeRead).length] : [named(), 0];
        return all.filter(isPending).length === setAside && named() === setAside + failed && setAside < all.length;
      },
    );
    const lost = records.filter(cannotBeRead);
    expect(lost.length).toBeGreaterThan(0);
    for (const { state, errorReason, errorCode } of lost) {
      if (table !== "event") expect(state).toBe("PENDING");
      else expect([state, errorCode, errorReason]).toEqual(["FAILED", "unreadable", expect.stringMatching(/damaged/)]);
    }
    const undone = records.filter(({ unreadable, state }) => !unreadable && state !== "DELIVERED");
    // To split the page beside a damaged one SQLite reads that, so some of its records cannot be written either.
    expect(undone.length).toBeLessThanOrEqual(table === "event" ? 0 : lost.length);
    for (const { state } of undone) expect(state).toBe("PENDING");
    const others = await readRecords(await app.signIn(neighbour.id, neighbour.password));
    expect(others.map(({ state }) => state)).toEqual(["DELIVERED"]);
  });

  test("stops no replay, and no janitor for others", async () => {
    const { dataDir, own, neighbour } = await abandoned("DELIVERED");
    damage(dataDir, table, type, byte);
    const app = await started(dataDir);
    const account = await app.signIn(own.id, own.password);
    const asked = await account.post("/v1/events/replays/all", { replayGroupId: "again" });
    expect(asked.status).toBe(202);
    const path = asked.headers.get("location") ?? "";
    const { body: replay } = await until(
      () => account.get(path),
      ({ body }) => body.status === "completed",
    );
    expect(replay).toMatchObject({ status: "completed", selected: events });
    expect(replay.delivered).toBeGreaterThan(events / 3);
    expect(replay.delivered + replay.failed + replay.skipped).toBe(events);

    for (const { id, password } of [own, neighbour]) await (await app.signIn(id, password)).delete("/v1/tenants");
    const client = new Database(join(dataDir, databaseFile), { readonly: true });
    const left = () =>
      client
        .query<{ id: string }, []>("select id from tenant")
        .all()
        .map(({ id }) => id);
    await until(left, (ids) => !ids.includes(neighbour.id));
    client.close();
  });
});

test("a payload that has changed where the database cannot notice is told by its checksum", async () => {
  const { dataDir, own } = await abandoned("DELIVERED");
  const last = pagesOf(dataDir, "event", "overflow").at(-1) as number;
  overwritePages(dataDir, [last], "y".charCodeAt(0));
  const app = await started(dataDir);
  const records = await readRecords(await app.signIn(own.id, own.password));
  expect(records.filter(({ unreadable }) => unreadable)).toMatchObject([{ originalPayload: null, state: "DELIVERED" }]);
});

describe("a start", () => {
  const reason = (dataDir: string) =>
    started(dataDir).then(
      () => "started",
      (error: Error) => `${error.name}: ${error.message}`,
    );
  const refused =
    /^StartupError: The database .*postrider\.db is damaged \(.*\)\. Try: restore it from a backup; .*\.recover/;

  test.each(["tenant", "webhook", "lane", "api_key_by_hash", "vault_check", "delivery_due", "tenant_usage"])(
    "is refused when %s is damaged, with what to do",
    async (name) => {
      const { dataDir } = await abandoned("PENDING");
      overwritePages(dataDir, pagesOf(dataDir, name, "leaf"));
      expect(await reason(dataDir)).toMatch(refused);
    },
  );

  test.each(["event", "delivery"])("is refused when the newest page of %s is damaged", async (name) => {
    const { dataDir } = await abandoned("DELIVERED");
    overwritePages(dataDir, pagesOf(dataDir, name, "leaf").slice(-1));
    expect(await reason(dataDir)).toMatch(refused);
  });

  test("is refused when the first page is damaged", async () => {
    const { dataDir } = await abandoned("DELIVERED");
    pagesOf(dataDir, "event", "leaf");
    overwritePages(dataDir, [1]);
    expect(await reason(dataDir)).toMatch(refused);
  });

  test("says that some of the latest events cannot be read", async () => {
    const { dataDir } = await abandoned("DELIVERED");
    overwritePages(dataDir, pagesOf(dataDir, "event", "leaf").slice(-2, -1));
    const app = await started(dataDir);
    expect(app.log.join("\n")).toMatch(/([1-9]|Some) of the latest 100 events cannot be read/);
  });
});
