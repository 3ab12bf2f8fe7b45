import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  batchOf,
  gate,
  type Hook,
  type HookAnswer,
  type Hooks,
  ingestOne,
  outcome,
  register,
  startHooks,
  until,
} from "../support/api-server.ts";
import { describeWithPostgres } from "../support/postgres.ts";
import { openStream } from "../support/stream-client.ts";
import type { Answer, TestAccount } from "../support/test-app.ts";
import { accountAt, asOperator, concurrency, type Pair, type SharedAccount, shareAccount, usePair } from "./pair.ts";

/**
 * What was answered by one server holds at the other from the answer on, and what belongs to an account is one, whichever of
 * them it comes to.
 */
describeWithPostgres("of two servers on one database", () => {
  const pair = usePair();
  let hooks: Hooks;
  beforeAll(async () => {
    hooks = await startHooks();
  });
  afterAll(() => hooks.stop());

  interface World extends Pair, SharedAccount {
    hook(answer?: HookAnswer): Hook;
  }

  const me = async (account: Pick<TestAccount, "get">) => (await account.get("/v1/tenants/me")).status;
  const taken = async (account: TestAccount) => (await account.ingest({})).status;

  /** So many events, accepted by the second server and to be delivered by it. */
  async function fillB({ b, atB }: World, count: number): Promise<string[]> {
    const { status, body } = await batchOf(b, atB, count);
    expect(status).toBe(202);
    return body.eventIds;
  }

  const inState = async (account: TestAccount, state: string): Promise<number> =>
    (await account.get(`/v1/events/state/${state}`)).body.total;

  const becomes = (account: TestAccount, state: string, count: number) =>
    until(
      () => inState(account, state),
      (found) => found === count,
    );

  const logIn = ({ request }: Pair["a"], loginId: string, password: string): Promise<Answer> =>
    request("POST", "/v1/tenants/auth/login", { body: { loginId, password } });

  const rows: Record<string, (world: World) => Promise<void>> = {
    async "an API key that was rotated at one is refused by the other, and the new one is taken"({ atA, atB }) {
      const { status, body } = await atA.post("/v1/tenants/api-keys/rotate");
      expect([status, await taken(atB)]).toEqual([201, 401]);
      expect(await taken(accountAt(pair().b, { ...atB, apiKey: body.key }))).toBe(202);
    },

    async "a session that was logged out at one has ended at the other, with its stream"({ b, atA, atB }) {
      const stream = await openStream(b, atB.jwt);
      expect(await me(atB)).toBe(200);
      expect((await atA.post("/v1/tenants/auth/logout")).status).toBe(204);
      expect(await me(atB)).toBe(401);
      await stream.ended;
    },

    async "a password that was changed at one ends all sessions at the other, and is the one to log in with"(world) {
      const { a, b, atA, atB } = world;
      const stream = await openStream(b, atB.jwt);
      const changed = await atA.put("/v1/tenants/password", {
        current_password: atA.password,
        new_password: "Corr3ct#Horse",
      });
      expect([changed.status, await me(atB)]).toEqual([200, 401]);
      await stream.ended;
      expect((await logIn(b, atB.id, atB.password)).status).toBe(401);
      expect((await logIn(a, atB.id, "Corr3ct#Horse")).status).toBe(200);
    },

    async "an account that was deleted at one is gone at the other, and its attempts there are broken off"(world) {
      const { atA, atB, hook } = world;
      const { url, received, whenReceived } = hook(() => {});
      await register(atA, url);
      await fillB(world, 3);
      await whenReceived(3);
      expect((await atA.delete("/v1/tenants")).status).toBe(204);
      expect([await me(atB), await taken(atB)]).toEqual([401, 401]);
      await Promise.all(received.map(({ broken }) => broken));
    },

    async "a suspension at one pauses the other, and the end of it lets it go on"(world) {
      const { a, atA, atB, hook } = world;
      const held = gate();
      const { url, received, whenReceived } = hook(held.answer);
      await register(atA, url);
      await fillB(world, concurrency + 4);
      await whenReceived(concurrency / 2);
      expect((await asOperator(a, "POST", `/tenants/${atA.id}/suspend`)).status).toBe(200);
      const started = received.length;
      expect(await taken(atB)).toBe(403);
      held.open();
      await becomes(atA, "DELIVERED", started);
      expect(received).toHaveLength(started);
      expect((await asOperator(a, "POST", `/tenants/${atA.id}/resume`)).status).toBe(200);
      expect(await taken(atB)).toBe(202);
      await becomes(atB, "DELIVERED", concurrency + 5);
    },

    async "a webhook that was removed at one gets nothing more from the other"(world) {
      const { atA, atB, hook } = world;
      const held = gate();
      const { url, received, whenReceived } = hook(held.answer);
      await register(atA, url);
      await fillB(world, 3 * concurrency);
      await whenReceived(concurrency / 2);
      const failedBefore = await inState(atB, "FAILED");
      await register(atA);
      const started = received.length;
      held.open();
      await becomes(atB, "DELIVERED", started);
      await becomes(atB, "FAILED", failedBefore + 3 * concurrency - started);
      expect(received).toHaveLength(started);
    },

    async "a webhook that was added at one gets what the other accepts"({ atA, atB, hook }) {
      await register(atA, hook().url);
      expect(await outcome(atB, await ingestOne(atB))).toMatchObject({ state: "DELIVERED" });
    },

    async "a webhook that takes what the other sends is not disabled for 410 answers to one"({ atA, atB, hook }) {
      const { url } = hook((response, _, { text }) => response.writeHead(text.includes("gone") ? 410 : 204).end());
      await register(atA, url);
      const send = async (account: TestAccount, gone: boolean) =>
        (await outcome(account, await ingestOne(account, { is: gone ? "gone" : "here" }))).state;
      const shown = async () => (await atB.get("/v1/tenants/webhooks?expand=true")).body[0];
      const sent = [await send(atA, true), await send(atB, false), await send(atA, true)];
      await until(shown, ({ failing_since }) => failing_since !== null);
      sent.push(await send(atA, true), await send(atB, false));
      expect(sent).toEqual(["FAILED", "DELIVERED", "FAILED", "FAILED", "DELIVERED"]);
      const next = async () => ({ sent: await send(atB, false), ...(await shown()) });
      const settled = await until(next, ({ failing_since, state }) => failing_since === null || state === "disabled");
      expect(settled).toMatchObject({ sent: "DELIVERED", state: "active" });
    },

    async "what is signed at one is signed with what was rotated at the other"({ atA, atB, hook }) {
      const target = hook();
      await register(atA, target.url);
      await outcome(atB, await ingestOne(atB));
      expect((await atA.post("/v1/tenants/signing-secret/rotate")).status).toBe(201);
      const { kid } = (await atA.post("/v1/tenants/signing-keys/rotate", { activate_after_seconds: 0 })).body;
      await ingestOne(atB);
      const [, after] = await target.whenReceived(2);
      const signatures = String(after?.headers["webhook-signature"]).split(" ");
      expect(signatures.filter((signature) => signature.startsWith("v1,"))).toHaveLength(2);
      expect(after?.headers["service-key-id"]).toBe(kid);
    },

    async "an idempotency key is one key"({ atA, atB }) {
      const send = (account: TestAccount) => account.ingest({ same: true }, { "Idempotency-Key": "once" });
      const answers = await Promise.all([send(atA), send(atB), send(atA), send(atB)]);
      expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
      expect(new Set(answers.map(({ body }) => body.eventId)).size).toBe(1);
    },

    async "a stream at one tells what the other accepts and delivers, and is resumed there"({ a, b, atA, atB, hook }) {
      await register(atA, hook().url);
      const stream = await openStream(b, atB.jwt);
      await stream.whenComments(1);
      const first = await ingestOne(atA);
      const { id } = await stream.next("delivery.finished", ({ eventId }) => eventId === first);
      expect(stream.messages.map(({ event }) => event)).toEqual([
        "event.accepted",
        "delivery.attempted",
        "delivery.finished",
      ]);
      stream.close();
      const missed = await ingestOne(atB);
      await outcome(atB, missed);
      const resumed = await openStream(a, atA.jwt, id);
      await resumed.next("delivery.finished", ({ eventId }) => eventId === missed);
      expect(resumed.messages.map(({ event, data }) => [event, data.eventId])).toEqual([
        ["event.accepted", missed],
        ["delivery.attempted", missed],
        ["delivery.finished", missed],
      ]);
      resumed.close();
    },

    async "failed logins count, whichever of them they came to"({ a, b, atA }) {
      for (let i = 0; i < 10; i += 1) expect((await logIn(i % 2 ? a : b, atA.id, "Wr0ng#Password")).status).toBe(401);
      const [atOne, atOther] = [await logIn(a, atA.id, atA.password), await logIn(b, atA.id, atA.password)];
      expect([atOne.status, atOther.status]).toEqual([429, 429]);
    },

    async "a month's quota is taken to the last event by both at once, and a higher tier at one holds at the other"(
      world,
    ) {
      const { a, b, atA, atB } = world;
      const most = 10_000;
      const before = (await atA.get("/v1/tenants/me")).body.events_this_month;
      async function take(server: Pair["a"], size: number): Promise<number> {
        let accepted = 0;
        for (;;) {
          const { status, body } = await batchOf(server, atA, size);
          if (status === 202) accepted += size;
          else {
            expect([status, body.code]).toEqual([429, "quota_exceeded"]);
            return accepted;
          }
        }
      }
      const sizes = [100, 7, 1];
      let accepted = 0;
      for (const size of sizes) {
        const shares = await Promise.all([take(a, size), take(b, size)]);
        accepted += shares[0] + shares[1];
      }
      expect(before + accepted).toBe(most);
      for (const account of [atA, atB]) {
        expect((await account.get("/v1/tenants/me")).body.events_this_month).toBe(most);
      }
      expect((await asOperator(a, "PUT", `/tenants/${atA.id}/tier`, { tier: "pro" })).status).toBe(200);
      expect(await taken(atB)).toBe(202);
    },

    async "a replay that was begun at one while deliveries wait at the other is complete, and each event was delivered with it"(
      world,
    ) {
      const { atA, atB, hook } = world;
      const held = gate();
      const { url, whenReceived } = hook(held.answer);
      await register(atA, url);
      const eventIds = await fillB(world, 2 * concurrency);
      await whenReceived(concurrency / 2);
      const replay = await atA.post("/v1/events/replays/all", { replayGroupId: "again" });
      expect(replay.status).toBe(202);
      const shown = () => atB.get(replay.headers.get("location") ?? "");
      await until(shown, ({ body }) => body.queued >= eventIds.length);
      held.open();
      const { body } = await until(shown, (answer) => answer.body.status === "completed");
      expect(body).toMatchObject({ delivered: body.queued, failed: 0 });
      for (const eventId of eventIds) {
        expect(await outcome(atB, eventId)).toMatchObject({ state: "DELIVERED", replayGroupId: "again" });
      }
    },

    async "what the own inbox is told to answer at one, it answers to the other"({ atA, atB }) {
      expect((await atA.put("/v1/inbox/answer", { status: 400 })).status).toBe(200);
      await register(atA, (await atA.get("/v1/inbox")).body.url);
      expect(await outcome(atB, await ingestOne(atB))).toMatchObject({ state: "FAILED", statusCode: 400 });
      expect((await atA.get("/v1/inbox")).body.total).toBe(1);
    },

    async "both are ready, and take what comes"({ a, b, atA, atB }) {
      for (const server of [a, b]) expect((await server.request("GET", "/readyz")).status).toBe(200);
      expect([await taken(atA), await taken(atB)]).toEqual([202, 202]);
    },
  };

  test.each(Object.entries(rows))("%s", async (_, row) => {
    const { a, b, url } = pair();
    const { atA, atB } = await shareAccount(pair());
    await row({ a, b, url, atA, atB, hook: (answer) => hooks.hook(answer) });
  });
});
