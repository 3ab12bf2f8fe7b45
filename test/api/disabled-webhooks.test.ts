// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import {
  closedPort,
  createTravelClock,
  type Hook,
  type Hooks,
  ingestOne,
  outcome,
  register,
  startHooks,
  until,
} from "../support/api-server.ts";
import { openStream } from "../support/stream-client.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { provenSections, scenarios, useServer } from "./scenario.ts";

provenSections.add("rules 14");

const hour = 3_600_000;
const day = 24 * hour;

const clock = createTravelClock();
const server = useServer({ clock, env: { POSTRIDER_RETRY_SCHEDULE: "10h,10h,10h" } });
let hooks: Hooks;
beforeAll(async () => {
  hooks = await startHooks();
});
afterAll(() => hooks.stop());

interface Expanded {
  readonly id: string;
  readonly url: string;
  readonly state: string;
  readonly failing_since: string | null;
  readonly disabled_at: string | null;
  readonly disabled_reason: string | null;
}

const webhooksOf = async (account: TestAccount): Promise<Expanded[]> =>
  (await account.get("/v1/tenants/webhooks?expand=true")).body;

async function webhookOf(account: TestAccount): Promise<Expanded> {
  const [webhook] = await webhooksOf(account);
  if (!webhook) throw new Error("There is no webhook");
  return webhook;
}

const webhookWhen = (account: TestAccount, holds: (webhook: Expanded) => boolean) =>
  until(() => webhookOf(account), holds);

/** Sessions end in two hours, and these accounts live for days. */
let sessions: { current: TestAccount; readonly server: () => TestApp }[] = [];
afterEach(() => {
  sessions = [];
});

async function accountWith(url: string, on = server): Promise<TestAccount> {
  const session = { current: await on().account(), server: on };
  sessions.push(session);
  await register(session.current, url);
  return {
    ...session.current,
    get: (path) => session.current.get(path),
    post: (path, body) => session.current.post(path, body),
    put: (path, body) => session.current.put(path, body),
  };
}

async function travel(ms: number): Promise<void> {
  clock.travel(ms);
  for (const session of sessions) {
    session.current = await session.server().signIn(session.current.id, session.current.password);
  }
}

/** One more event comes, and its first attempt is made. */
async function attempt(account: TestAccount, hook: Hook): Promise<string> {
  const before = hook.received.length;
  const id = await ingestOne(account);
  await hook.whenReceived(before + 1);
  await until(
    async () => (await account.get(`/v1/events/${id}`)).body[0],
    ({ attempts }) => attempts > 0,
  );
  return id;
}

/** Fails until it is disabled: by a retry, or by the attempt of one more event. */
async function failUntilDisabled(account: TestAccount, hook: Hook): Promise<void> {
  await attempt(account, hook);
  for (const pause of [hour, day, 3 * day]) {
    await travel(pause);
    await attempt(account, hook);
  }
  await travel(day);
  await ingestOne(account);
  await webhookWhen(account, ({ state }) => state === "disabled");
}

const states = async (account: TestAccount): Promise<Record<string, number>> => {
  const { body } = await account.get("/v1/events?size=1000&payload=false");
  const counted: Record<string, number> = {};
  for (const { state } of body.events) counted[state] = (counted[state] ?? 0) + 1;
  return counted;
};

describe("a webhook of which every attempt fails (rules, section 14)", () => {
  test("is disabled after five days, and says since when and why", async () => {
    const hook = hooks.hook(503);
    const account = await accountWith(hook.url);
    const begin = clock.now();
    await attempt(account, hook);
    await travel(hour);
    await attempt(account, hook);
    const { failing_since } = await webhookWhen(account, (one) => one.failing_since !== null);
    expect(Math.abs(Date.parse(failing_since ?? "") - begin)).toBeLessThan(hour);
    await travel(4 * day);
    await attempt(account, hook);
    await travel(day - 2 * hour);
    await attempt(account, hook);
    expect(await webhookOf(account)).toMatchObject({ state: "active", failing_since, disabled_at: null });
    await travel(2 * hour);
    await ingestOne(account);
    const disabled = await webhookWhen(account, ({ state }) => state === "disabled");
    expect(disabled).toMatchObject({ failing_since, disabled_reason: "failing" });
    expect(Math.abs(Date.parse(disabled.disabled_at ?? "") - clock.now())).toBeLessThan(hour);
  });

  test("is not, if a single one succeeded meanwhile", async () => {
    const hook = hooks.hook(503);
    const account = await accountWith(hook.url);
    await attempt(account, hook);
    await travel(4 * day);
    await attempt(account, hook);
    await webhookWhen(account, (one) => one.failing_since !== null);
    hook.answer = 204;
    await attempt(account, hook);
    await webhookWhen(account, (one) => one.failing_since === null);
    hook.answer = 503;
    await travel(2 * day);
    await attempt(account, hook);
    await travel(2 * day);
    await attempt(account, hook);
    expect(await webhookWhen(account, (one) => one.failing_since !== null)).toMatchObject({ state: "active" });
  });

  test("fails what waits, and what comes meanwhile, and nothing goes out to it", async () => {
    const hook = hooks.hook(503);
    const account = await accountWith(hook.url);
    await failUntilDisabled(account, hook);
    await until(
      () => states(account),
      ({ PENDING }) => PENDING === undefined,
    );
    const sent = hook.received.length;
    const late = await outcome(account, await ingestOne(account));
    expect(late).toMatchObject({
      state: "FAILED",
      targetWebhook: hook.url,
      errorCode: "webhook_disabled",
      errorReason: "The webhook was disabled before the delivery succeeded",
      statusCode: null,
      attempts: 0,
    });
    await travel(day);
    await server().app.whenIdle();
    expect(hook.received).toHaveLength(sent);
    const { body } = await account.get("/v1/events?code=webhook_disabled&payload=false");
    expect(body.total).toBeGreaterThan(1);
  });

  test("is enabled without a flood, and the failed replay sends what was missed", async () => {
    const hook = hooks.hook(503);
    const account = await accountWith(hook.url);
    await failUntilDisabled(account, hook);
    const missed = await ingestOne(account);
    await until(
      () => states(account),
      ({ PENDING }) => PENDING === undefined,
    );
    hook.answer = 204;
    const sent = hook.received.length;
    const { id } = await webhookOf(account);
    const enabled = await account.post(`/v1/tenants/webhooks/${id}/enable`);
    expect(enabled.status).toBe(200);
    expect(enabled.body).toMatchObject({ id, state: "active", failing_since: null, disabled_at: null });
    await attempt(account, hook);
    await server().app.whenIdle();
    expect(hook.received).toHaveLength(sent + 1);
    await account.post("/v1/events/replays/failed", { replayGroupId: "after the outage" });
    await until(
      () => states(account),
      ({ FAILED }) => FAILED === undefined,
    );
    expect((await outcome(account, missed)).state).toBe("DELIVERED");
  });

  test("keeps its state when the list is set anew with its URL", async () => {
    const hook = hooks.hook(410);
    const account = await accountWith(hook.url);
    for (let i = 0; i < 3; i++) await attempt(account, hook);
    const { id } = await webhookWhen(account, ({ state }) => state === "disabled");
    await account.put("/v1/tenants/webhooks", [{ webhook_url: hook.url, name: "renamed" }]);
    expect(await webhookOf(account)).toMatchObject({ id, name: "renamed", state: "disabled" });
    await account.put("/v1/tenants/webhooks", []);
    await register(account, hook.url);
    expect(await webhookOf(account)).toMatchObject({ state: "active", failing_since: null });
  });
});

describe("a webhook that answers 410 (rules, section 14)", () => {
  test("is disabled by the third delivery in a row", async () => {
    const hook = hooks.hook(410);
    const account = await accountWith(hook.url);
    await attempt(account, hook);
    await attempt(account, hook);
    hook.answer = 204;
    await attempt(account, hook);
    hook.answer = 410;
    await attempt(account, hook);
    await attempt(account, hook);
    expect(await webhookOf(account)).toMatchObject({ state: "active" });
    await attempt(account, hook);
    expect(await webhookWhen(account, ({ state }) => state === "disabled")).toMatchObject({ disabled_reason: "gone" });
  });
});

describe("an account is told by its own webhooks (rules, section 14)", () => {
  interface Told {
    readonly eventId: string;
    readonly tenantId: string;
    readonly payload: { event_type: string; webhook: { id: string } };
  }

  /** Of one webhook that fails, and another that asks to be told. */
  async function watched(answer: number) {
    const [failing, listener] = [hooks.hook(answer), hooks.hook(204)];
    const account = await accountWith(failing.url);
    await account.setTier("business");
    const entries = [
      { webhook_url: failing.url, name: "Shop" },
      { webhook_url: listener.url, event_types: ["postrider.*"] },
    ];
    await account.put("/v1/tenants/webhooks", entries);
    const told = (): Told[] => listener.received.map(({ text }) => JSON.parse(text));
    const types = () => told().map(({ payload }) => payload.event_type);
    return { account, failing, listener, told, types, ...(await webhookOf(account)) };
  }

  test("a day after the first failure, a day before it is disabled, when it is, and when it is enabled", async () => {
    const { account, failing, told, types, id } = await watched(503);
    const of = (name: string) => types().filter((type) => type === `postrider.webhook.${name}`).length;
    await attempt(account, failing);
    await travel(hour);
    await attempt(account, failing);
    await webhookWhen(account, ({ failing_since }) => failing_since !== null);
    expect(of("failing")).toBe(0);
    await travel(day);
    await attempt(account, failing);
    await until(types, () => of("failing") === 1);
    await travel(3 * day);
    await attempt(account, failing);
    await until(types, () => of("failing") === 2);
    expect(of("disabled")).toBe(0);
    await travel(day);
    await ingestOne(account);
    await until(types, () => of("disabled") === 1);
    await account.post(`/v1/tenants/webhooks/${id}/enable`);
    await until(types, () => of("enabled") === 1);
    expect(of("failing")).toBe(2);
    for (const { payload, tenantId } of told()) {
      expect({ tenantId, webhook: payload.webhook }).toEqual({
        tenantId: account.id,
        webhook: { id, name: "Shop", host: new URL(failing.url).host },
      } as never);
    }
    const disabled = told().find(({ payload }) => payload.event_type === "postrider.webhook.disabled");
    expect(disabled?.payload).toMatchObject({ disabled_reason: "failing", failing_since: expect.any(String) });
  });

  test("that a delivery has failed for good, and that one succeeded after it, and as real events", async () => {
    const { account, failing, listener, told, types } = await watched(404);
    const before = (await account.get("/v1/tenants/me")).body;
    const lost = await attempt(account, failing);
    await until(types, (list) => list.includes("postrider.delivery.exhausted"));
    expect(told()[0]?.payload).toMatchObject({
      count: 1,
      latest: { event_id: lost, error_code: "http_status", status_code: 404 },
    });
    failing.answer = 204;
    await travel(60_000);
    const saved = await attempt(account, failing);
    await until(types, (list) => list.includes("postrider.delivery.recovered"));
    expect(told()[1]?.payload).toMatchObject({ event_id: saved });
    expect(listener.received[0]?.headers["service-signature"]).toBeString();
    const own = await account.get(`/v1/events/${told()[0]?.eventId}`);
    expect(own.body).toMatchObject([{ eventType: "postrider.delivery.exhausted", targetWebhook: listener.url }]);
    const after = (await account.get("/v1/tenants/me")).body;
    expect(after.events_this_month - before.events_this_month).toBe(2);
  });

  test("and nothing is stored where nobody asks", async () => {
    const hook = hooks.hook(404);
    const account = await accountWith(hook.url);
    await attempt(account, hook);
    await attempt(account, hook);
    await server().app.whenIdle();
    expect((await account.get("/v1/events")).body.totalEvents).toBe(2);
  });
});

describe("an outage of our own (rules, section 14)", () => {
  // Where nothing else answers.
  const alone = useServer({ clock, env: { POSTRIDER_RETRY_SCHEDULE: "10h" } });

  test("counts against nobody: two hosts, of two accounts, do not answer", async () => {
    const port = await closedPort();
    const hosts = ["127.0.0.1", "localhost"];
    const accounts = await Promise.all(hosts.map((host) => accountWith(`http://${host}:${port}/hook`, alone)));
    const fail = async () => {
      for (const account of accounts) {
        const id = await ingestOne(account);
        await until(
          async () => (await account.get(`/v1/events/${id}`)).body[0],
          ({ attempts }) => attempts > 0,
        );
      }
    };
    for (let i = 0; i < 8; i++) {
      await fail();
      await travel(day);
    }
    const hook = hooks.hook(204);
    const reachable = await accountWith(hook.url, alone);
    await attempt(reachable, hook);
    await fail();
    // Its first failure since the network is back, which is the first that counts.
    const [first] = accounts;
    const noted = first && (await webhookWhen(first, ({ failing_since }) => failing_since !== null));
    expect(clock.now() - Date.parse(noted?.failing_since ?? "")).toBeLessThan(hour);
    for (const account of accounts) expect(await webhookOf(account)).toMatchObject({ state: "active" });
  });
});

describe("what the stream says", () => {
  test("is told at once: a webhook was disabled, and enabled", async () => {
    const hook = hooks.hook(410);
    const account = await accountWith(hook.url);
    const stream = await openStream(server(), account.jwt);
    for (let i = 0; i < 3; i++) await attempt(account, hook);
    const disabled = await stream.next("webhook.changed", ({ state }) => state === "disabled");
    const { id } = await webhookOf(account);
    expect(disabled.data).toMatchObject({ webhookId: id, targetWebhook: hook.url, disabledReason: "gone" });
    await account.post(`/v1/tenants/webhooks/${id}/enable`);
    const enabled = await stream.next("webhook.changed", ({ failingSince }) => failingSince === null);
    expect(enabled.data).toMatchObject({ webhookId: id, disabledAt: null, disabledReason: null, failingSince: null });
    stream.close();
  });
});

interface World {
  server: TestApp;
  account: TestAccount;
  stranger: TestAccount;
  id: string;
}

describe("enabling", () => {
  let world: World;
  beforeAll(async () => {
    const [account, stranger] = await Promise.all([server().account(), server().account()]);
    await register(account, "https://example.com/hook");
    world = { server: server(), account, stranger, id: (await webhookOf(account)).id };
  });

  scenarios<World>("POST /v1/tenants/webhooks/{id}/enable", () => world, {
    "of one that is not disabled changes nothing": {
      section: "rules 14",
      request: ({ account, id }) => account.post(`/v1/tenants/webhooks/${id}/enable`),
      status: 200,
      body: ({ id }: World) => ({ id, url: "https://example.com/hook", state: "active", failing_since: null }),
      then: async ({ account }, { body }) => expect(await webhooksOf(account)).toEqual([body]),
    },
    "of one that does not exist": {
      section: "rules 14",
      request: ({ account }) => account.post("/v1/tenants/webhooks/wh_0/enable"),
      status: 404,
      body: { code: "webhook_not_found" },
    },
    "of somebody else's": {
      section: "rules 14",
      request: ({ stranger, id }) => stranger.post(`/v1/tenants/webhooks/${id}/enable`),
      status: 404,
      body: { code: "webhook_not_found" },
      never: () => ["example.com"],
    },
  });
});
