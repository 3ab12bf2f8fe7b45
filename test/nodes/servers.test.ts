import { expect, test } from "bun:test";
import { sharedSecretsFrom } from "../../src/secrets.ts";
import { migrations } from "../../src/store/postgres/migrations.ts";
import { describeWithPostgres, usePostgres } from "../support/postgres.ts";
import { startReceiver } from "../support/receiver.ts";
import { startTestApp, type TestAccount, type TestApp, type TestAppOptions } from "../support/test-app.ts";

const secrets = {
  masterKey: new Uint8Array(32).fill(7),
  sessionSecret: "of sessions",
  operatorToken: "the operator's",
};

/** Whole servers, each with a folder of its own. */
describeWithPostgres("servers on one database", () => {
  const postgres = usePostgres();

  async function start(url: string, name: string, port = 0, more: TestAppOptions = {}): Promise<TestApp> {
    const env = { POSTRIDER_DATABASE_URL: url, POSTRIDER_NODE_NAME: name, POSTRIDER_PORT: String(port), ...more.env };
    const server = await startTestApp({ secrets, durability: "waived", ...more, env });
    postgres.cleanUpFirst(() => server.stop());
    return server;
  }

  const register = (account: TestAccount, url: string) =>
    account.put("/v1/tenants/webhooks", [{ webhook_name: "Other", webhook_url: url }]);

  test("say in their metrics which they are, how many there are, and what they write", async () => {
    const database = await postgres.migrated();
    const first = await start(database, "first");
    const second = await start(database, "second");
    const account = await first.account();
    expect((await account.ingest({})).status).toBe(202);
    const metricsOf = async (server: TestApp) => (await server.request("GET", "/metrics")).text;
    const valueIn = (text: string, name: string) => Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1]);
    const [there, here] = [await metricsOf(first), await metricsOf(second)];
    expect(there).toContain('postrider_node_info{node="first"} 1');
    expect(here).toContain('postrider_node_info{node="second"} 1');
    expect(valueIn(here, "postrider_nodes")).toBe(2);
    expect(valueIn(here, "postrider_node_lease_seconds")).toBeLessThan(20);
    expect(valueIn(there, "postrider_commit_size_count")).toBeGreaterThan(0);
    expect(valueIn(there, "postrider_commit_duration_seconds_sum")).toBeGreaterThan(0);
    while (!(valueIn(await metricsOf(first), "postrider_database_bytes") > 0)) await Bun.sleep(50);
  });

  test("say that another one has the same name", async () => {
    const database = await postgres.migrated();
    const warned = async (name: string) =>
      (await start(database, name)).log.filter((line) => line.includes('"event":"node.name_taken"'));
    expect(await warned("same")).toEqual([]);
    expect(await warned("other")).toEqual([]);
    const [line = "{}", ...more] = await warned("same");
    expect(more).toEqual([]);
    expect(JSON.parse(line)).toMatchObject({ level: "warn", node: "same", message: expect.stringContaining("Try: ") });
  });

  test.each([
    ["a session secret of its own", secrets, 1],
    ["the one that follows from the master key", { ...secrets, ...sharedSecretsFrom(secrets.masterKey) }, 0],
  ])("warn that their sessions may not be valid on the others: %s", async (_, own, warnings) => {
    const { log } = await start(await postgres.migrated(), "first", 0, { secrets: own });
    expect(log.filter((line) => line.includes("session-secret"))).toHaveLength(warnings);
  });

  test("say how long a transaction has kept rows from being vacuumed", async () => {
    const database = await postgres.migrated();
    const server = await start(database, "first");
    const age = async () => {
      const { text } = await server.request("GET", "/metrics");
      return Number(/^postrider_database_oldest_snapshot_seconds (.+)$/m.exec(text)?.[1]);
    };
    const holder = postgres.pool(database);
    await holder.snapshot(async ({ run }) => {
      await run("select count(*) from tenant");
      await run("select pg_sleep(1.1)");
      // What is said is of the look before.
      while (!((await age()) > 1)) await Bun.sleep(20);
    });
    // It has let go by then, or is about to.
    while ((await age()) > 1) await Bun.sleep(20);
  });

  test("are listed to the operator, by each of them", async () => {
    const database = await postgres.migrated();
    const first = await start(database, "first");
    const second = await start(database, "second");
    const list = async (server: TestApp) =>
      (await server.request("GET", "/operator/nodes", { token: secrets.operatorToken })).body.nodes;
    expect((await second.request("GET", "/operator/nodes")).status).toBe(401);
    const [there, here] = [await list(first), await list(second)];
    const entry = (name: string, { url }: TestApp, answering: boolean) => ({
      name,
      listeners: expect.arrayContaining([new URL(url).host]),
      since: expect.stringMatching(/^\d{4}-.*Z$/),
      alive: true,
      answering,
    });
    expect(there).toMatchObject([entry("first", first, true), entry("second", second, false)]);
    expect(here).toMatchObject([entry("first", first, false), entry("second", second, true)]);
    expect(here.map(({ slot }: { slot: number }) => slot)).toEqual([0, 1]);
    for (const { last_heartbeat_seconds: since, lease_left_seconds: left, schema } of here) {
      expect([since < 20, left > 0 && left <= 20, schema]).toEqual([true, true, migrations.length]);
    }
    // The tests' servers take no payments, so they leave that job to others.
    expect(here.flatMap(({ jobs }: { jobs: string[] }) => jobs).toSorted()).toEqual(["janitor", "replayer"]);
    await second.app.stop();
    expect(await list(first)).toMatchObject([{ name: "first" }]);
  });

  test("answer while they leave, until a balancer has noticed; the others deliver what was accepted so late", async () => {
    const database = await postgres.migrated();
    const leaves = { env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com" }, noticeMs: 1_000 };
    const stays = await start(database, "stays", 0, leaves);
    // The last one to come knows of the others at once.
    const goes = await start(database, "goes", 0, leaves);
    const account = await goes.account();
    const inbox = (await account.get("/v1/inbox")).body.url;
    expect((await account.put("/v1/tenants/webhooks", [{ webhook_url: inbox }])).status).toBe(200);
    const left = goes.app.stop();
    const [ready, late] = await Promise.all([goes.request("GET", "/readyz"), account.ingest({})]);
    expect([ready.status, late.status]).toEqual([503, 202]);
    await left;
    const there = await stays.signIn(account.id, account.password);
    while ((await there.get(`/v1/events/${late.body.eventId}`)).body[0].state !== "DELIVERED") await Bun.sleep(50);
  });

  test("go over into each other: the next one delivers while attempts of the one before are under way", async () => {
    const database = await postgres.migrated();
    const before = await start(database, "before");
    const account = await before.account();
    const held = Promise.withResolvers<Response>();
    const receiver = startReceiver({ answer: ({ nth }) => (nth === 1 ? held.promise : new Response()) });
    await register(account, receiver.url);
    const { eventId: first } = (await account.ingest({})).body;
    await receiver.waitFor(1);
    let after: TestApp | undefined;
    const ended = before.app.handOver({
      pid: 0,
      version: "next",
      takePort: () => Promise.reject(new Error("Nothing is to be held")),
      enter: () => Promise.reject(new Error("Nothing is to be waited for")),
      async enterBeside() {
        after = await start(database, "after");
        return true;
      },
      kill() {},
    });
    while (!after) await Bun.sleep(5);
    const there = await after.signIn(account.id, account.password);
    const { eventId: second } = (
      await after.request("POST", "/v1/ingest", { token: account.apiKey, body: { payload: {} } })
    ).body;
    await receiver.waitFor(2);
    const stateOf = async (id: string) => (await there.get(`/v1/events/${id}`)).body[0];
    while ((await stateOf(second)).state !== "DELIVERED") await Bun.sleep(10);
    expect(await stateOf(first)).toMatchObject({ state: "PENDING" });
    held.resolve(new Response());
    expect(await ended).toBe(true);
    expect(await stateOf(first)).toMatchObject({ state: "DELIVERED", attempts: 1 });
    await receiver.stop();
  });

  test("take the operator's session of one at all of them", async () => {
    const database = await postgres.migrated();
    const [first, second] = [await start(database, "first"), await start(database, "second")];
    const signedIn = await first.request("POST", "/operator/session", { body: { token: secrets.operatorToken } });
    const headers = { Cookie: signedIn.headers.get("set-cookie")?.split(";")[0] ?? "" };
    expect((await second.request("GET", "/operator/nodes", { headers })).status).toBe(200);
    for (let guess = 0; guess < 10; guess += 1)
      await (guess % 2 ? first : second).request("POST", "/operator/session", { body: { token: "svc_op_wrong" } });
    const late = await first.request("POST", "/operator/session", { body: { token: secrets.operatorToken } });
    expect([late.status, late.body.code]).toEqual([429, "too_many_logins"]);
  });

  test("deliver to none of their own listeners, whichever of them it is", async () => {
    const database = await postgres.migrated();
    const first = await start(database, "first");
    const account = await first.account();
    // What is saved while the second one is not there yet.
    const placeholder = startReceiver();
    const target = `${placeholder.url}/v1/ingest`;
    expect(await register(account, target)).toMatchObject({ status: 200 });
    expect((await account.ingest({})).status).toBe(202);
    await placeholder.waitFor(1);
    await placeholder.stop();
    const second = await start(database, "second", Number(new URL(target).port));

    const there = await second.signIn(account.id, account.password);
    expect((await register(there, `${first.url}/`)).body).toMatchObject({ code: "invalid_webhook_url" });
    while ((await register(account, target)).status === 200) await Bun.sleep(50);
    expect((await register(account, target)).body.message).toContain("must not be an address of this server itself");

    const { eventId } = (await account.ingest({})).body;
    await first.app.whenIdle();
    const [record] = (await account.get(`/v1/events/${eventId}`)).body;
    expect(record.errorCode).toBe("address_not_public");
  });
});
