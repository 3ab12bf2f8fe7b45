// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, describe, expect } from "bun:test";
import {
  batchOf,
  gate,
  type Hook,
  type HookAnswer,
  type Hooks,
  ingestOne,
  type RecordBody,
  register,
  settled,
  startHooks,
  until,
} from "../support/api-server.ts";
import type { Answer, TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

interface World {
  server: TestApp;
  tenant: TestAccount;
  other: TestAccount;
  otherEventId: string;
  /** 10,000 events without a webhook. */
  busy: TestAccount;
}

let hooks: Hooks;
let world: World;
afterAll(() => hooks.stop());
const server = useServer();
beforeAll(async () => {
  hooks = await startHooks();
  const [tenant, other, busy] = await Promise.all([server().account(), server().account(), server().account()]);
  await Promise.all([tenant.setTier("enterprise"), busy.setTier("enterprise")]);
  const otherEventId = await ingestOne(other, { secret: "payload-of-other" });
  for (let i = 0; i < 10; i += 1) await batchOf(server(), busy, 1000);
  world = { server: server(), tenant, other, otherEventId, busy };
});

const error = (code: string) => ({ message: expect.stringMatching(/^\S.{10,}\.$/), code });
const never = ({ other, otherEventId }: World) => [other.id, otherEventId, "payload-of-other"];
const locationPattern = /^\/v1\/events\/replays\/rpl_[0-9a-z]{26}$/;

/** An account of its own with these webhooks. */
async function accountWith(...answers: HookAnswer[]): Promise<{ account: TestAccount; hooked: Hook[] }> {
  const account = await server().account();
  await account.setTier("enterprise");
  const hooked = answers.map((answer) => hooks.hook(answer));
  await register(account, ...hooked.map(({ url }) => url));
  return { account, hooked };
}

const start = (account: TestAccount, kind: string, body: Record<string, unknown>) =>
  account.post(`/v1/events/replays/${kind}`, { replayGroupId: "g", ...body });

/** The replay that an answer points to, once it has ended. */
const completed = (account: TestAccount, { headers }: Answer): Promise<Answer> =>
  until(
    () => account.get(headers.get("location") ?? ""),
    ({ body }) => body.status === "completed",
  );

const counts = ({ body }: Answer) => [
  body.selected,
  body.queued,
  body.delivered,
  body.failed,
  body.superseded,
  body.skipped,
];
const brief = (records: RecordBody[]) => records.map((r) => [r.targetWebhook, r.state, r.attempts, r.replayGroupId]);

const refused = (kind: string, bodies: Record<string, [body: unknown, code: string]>) =>
  Object.fromEntries(
    Object.entries(bodies).map(([what, [body, code]]): [string, Scenario<World>] => [
      what,
      {
        section: "rules 10",
        request: ({ tenant }) => tenant.post(`/v1/events/replays/${kind}`, body),
        status: 400,
        exact: true,
        body: error(code),
      },
    ]),
  );

const badLabels: Record<string, [body: unknown, code: string]> = {
  "no label": [{}, "field_required"],
  "an empty label": [{ replayGroupId: "" }, "invalid_request"],
  "a label that is no string": [{ replayGroupId: 7 }, "invalid_request"],
  "a body that is a list": [[], "invalid_request"],
  "a body that is no JSON": ["{", "invalid_json"],
};

describe("single", () => {
  let made: Awaited<ReturnType<typeof accountWith>>;
  let eventId: string;

  scenarios("POST /v1/events/replays/single", () => world, {
    "delivers once more to every webhook, with the label": {
      section: "spec: Replays",
      async given() {
        made = await accountWith(200, 404);
        eventId = await ingestOne(made.account, { n: 1 });
        await settled(made.account, eventId);
      },
      request: () => start(made.account, "single", { eventId, replayGroupId: "größe 100%" }),
      status: 202,
      exact: true,
      body: { status: "initiated" },
      headers: { location: locationPattern },
      async then(_, answer) {
        const { account, hooked } = made;
        const replay = await completed(account, answer);
        expect(counts(replay)).toEqual([1, 2, 1, 1, 0, 0]);
        const records = await settled(account, eventId);
        expect(brief(records)).toEqual([
          [hooked[0]?.url ?? "", "DELIVERED", 2, "größe 100%"],
          [hooked[1]?.url ?? "", "FAILED", 2, "größe 100%"],
        ]);
        for (const { received } of hooked) {
          expect(received.map(({ headers }) => headers["service-replay-group"])).toEqual([
            undefined,
            "gr%C3%B6%C3%9Fe%20100%25",
          ]);
          expect(received.map(({ headers }) => headers["service-event-id"])).toEqual([eventId, eventId]);
          expect(received[1]?.text).toBe(received[0]?.text as string);
        }
        const { body: attempts } = await account.get(`/v1/events/${eventId}/attempts`);
        const numbers = attempts.map((a: { number: number; replayGroupId: string | null }) => [
          a.number,
          a.replayGroupId,
        ]);
        expect(numbers).toEqual([
          [1, null],
          [1, null],
          [2, "größe 100%"],
          [2, "größe 100%"],
        ]);
      },
    },
    "a label of more than 1,024 bytes goes into the record and into no header": {
      section: "spec: Replay group",
      request: () => start(made.account, "single", { eventId, replayGroupId: "ü".repeat(400) }),
      status: 202,
      async then(_, answer) {
        await completed(made.account, answer);
        expect(made.hooked[0]?.received.at(-1)?.headers["service-replay-group"]).toBeUndefined();
        const [record] = await settled(made.account, eventId);
        expect(record?.replayGroupId).toBe("ü".repeat(400));
      },
    },
    "one in flight starts its new run when that attempt ends": {
      section: "rules 8",
      async request() {
        const held = gate();
        const inFlight = await accountWith(held.answer);
        const id = await ingestOne(inFlight.account);
        await inFlight.hooked[0]?.whenReceived(1);
        const first = await start(inFlight.account, "single", { eventId: id });
        const second = await start(inFlight.account, "single", { eventId: id, replayGroupId: " " });
        held.open();
        expect(counts(await completed(inFlight.account, second))).toEqual([1, 1, 1, 0, 0, 0]);
        expect(counts(await completed(inFlight.account, first))).toEqual([1, 1, 0, 0, 1, 0]);
        const [record] = await settled(inFlight.account, id);
        expect([record?.attempts, inFlight.hooked[0]?.received.length]).toEqual([2, 2]);
        return second;
      },
      status: 202,
    },
    ...refused("single", {
      "no eventId": [{ replayGroupId: "g" }, "field_required"],
      "an eventId that is no string": [{ replayGroupId: "g", eventId: 1 }, "invalid_request"],
      ...Object.fromEntries(
        Object.entries(badLabels).map(([what, [body, code]]): [string, [unknown, string]] => [
          what,
          [typeof body === "object" && !Array.isArray(body) ? { eventId: "evt_x", ...body } : body, code],
        ]),
      ),
    }),
    "another account's event": {
      section: "spec: Authentication",
      request: ({ tenant, otherEventId }) => start(tenant, "single", { eventId: otherEventId }),
      status: 403,
      exact: true,
      body: { message: "The event with this eventId belongs to another account.", code: "event_of_another_account" },
      never,
    },
    "an unknown event": {
      section: "spec: Replays",
      request: ({ tenant }) => start(tenant, "single", { eventId: "evt_00000000007000800000000000" }),
      status: 404,
      exact: true,
      body: error("event_not_found"),
    },
    "the 601st in a minute": {
      section: "rules 3",
      async request({ other, otherEventId }) {
        for (let i = 0; i < 12; i += 1) {
          const fifty = Array.from({ length: 50 }, () => start(other, "single", { eventId: otherEventId }));
          for (const { status } of await Promise.all(fifty)) expect(status).toBe(202);
        }
        return start(other, "single", { eventId: otherEventId });
      },
      status: 429,
      exact: true,
      body: error("too_many_single_replays"),
      headers: { "retry-after": /^[1-9]\d?$/ },
    },
  });
});

describe("all and timeline", () => {
  scenarios("POST /v1/events/replays/all", () => world, {
    "every event, in the background; 202 without a body": {
      section: "spec: Replays",
      async request() {
        const { account, hooked } = await accountWith(200);
        const { eventIds } = (await batchOf(server(), account, 250)).body;
        await hooked[0]?.whenReceived(250);
        await settled(account, eventIds[249]);
        const answer = await start(account, "all", {});
        expect(counts(await completed(account, answer)).slice(0, 3)).toEqual([250, 250, 250]);
        const replayed =
          hooked[0]?.received.slice(250).map(({ headers }) => headers["service-event-id"] as string) ?? [];
        expect(replayed.sort()).toEqual(eventIds);
        return answer;
      },
      status: 202,
      headers: { location: locationPattern },
      then: (_, { text }) => expect(text).toBe(""),
    },
    ...refused("all", badLabels),
    "one runs, ten wait, and one more is too many": {
      section: "rules 3",
      async request({ busy }) {
        const answers = await Promise.all(Array.from({ length: 12 }, () => start(busy, "all", {})));
        const refusal = answers.find(({ status }) => status !== 202);
        expect(answers.filter(({ status }) => status === 202)).toHaveLength(11);
        const { replays } = (await busy.get("/v1/events/replays")).body;
        expect(replays.filter(({ status }: { status: string }) => status === "running").length).toBeLessThanOrEqual(1);
        for (const { id } of replays) await busy.delete(`/v1/events/replays/${id}`);
        return refusal as Answer;
      },
      status: 429,
      exact: true,
      body: error("too_many_replays"),
      headers: { "retry-after": /^\d+$/ },
    },
  });

  scenarios("POST /v1/events/replays/timeline", () => world, {
    "events by their ingestion time, both ends inclusive": {
      section: "spec: Replays",
      async request() {
        const { account, hooked } = await accountWith(200);
        const records: RecordBody[] = [];
        for (let n = 0; n < 4; n += 1) {
          records.push(...(await settled(account, await ingestOne(account, { n }))));
          await Bun.sleep(2); // so that no two share a millisecond
        }
        const [startTime, endTime] = [records[1]?.ingestionTimestamp, records[2]?.ingestionTimestamp];
        const answer = await start(account, "timeline", { startTime, endTime });
        expect(counts(await completed(account, answer))).toEqual([2, 2, 2, 0, 0, 0]);
        const replayed = hooked[0]?.received.slice(4).map(({ headers }) => headers["service-event-id"]);
        expect(replayed?.sort()).toEqual([records[1]?.eventId, records[2]?.eventId]);
        return answer;
      },
      status: 202,
      then: (_, { text }) => expect(text).toBe(""),
    },
    ...refused("timeline", {
      "no times": [{ replayGroupId: "g" }, "field_required"],
      "no end": [{ replayGroupId: "g", startTime: "2026-01-01" }, "field_required"],
      "an impossible date": [{ replayGroupId: "g", startTime: "2026-02-30", endTime: "2026-03-01" }, "invalid_request"],
      "a start after the end": [
        { replayGroupId: "g", startTime: "2026-01-02", endTime: "2026-01-01" },
        "invalid_request",
      ],
      "a number": [{ replayGroupId: "g", startTime: 0, endTime: 1 }, "invalid_request"],
    }),
  });
});

describe("failed", () => {
  scenarios("POST /v1/events/replays/failed", () => world, {
    "only to those that have not acknowledged": {
      section: "rules 10",
      async request() {
        const { account, hooked } = await accountWith(200, 404);
        const [good, bad] = hooked as [Hook, Hook];
        const eventId = await ingestOne(account);
        await settled(account, eventId);
        bad.answer = 200;
        const answer = await start(account, "failed", {});
        expect(counts(await completed(account, answer))).toEqual([1, 1, 1, 0, 0, 0]);
        expect([good.received.length, bad.received.length]).toEqual([1, 2]);
        expect((await settled(account, eventId)).map(({ errorReason }) => errorReason)).toEqual([null, null]);
        return answer;
      },
      status: 202,
      then: (_, { text }) => expect(text).toBe(""),
    },
    "an event that found no webhook gets records for those registered by then": {
      section: "rules 7",
      async request() {
        const { account } = await accountWith();
        const eventId = await ingestOne(account);
        const [a, b] = [hooks.hook(), hooks.hook()];
        await register(account, a.url, b.url);
        const answer = await start(account, "failed", {});
        expect(counts(await completed(account, answer))).toEqual([1, 2, 2, 0, 0, 0]);
        expect(brief(await settled(account, eventId))).toEqual([
          [a.url, "DELIVERED", 1, "g"],
          [b.url, "DELIVERED", 1, "g"],
        ]);
        return answer;
      },
      status: 202,
    },
    "a record of a URL that is gone is replaced, or skipped when every webhook has one": {
      section: "rules 10",
      async request() {
        const { account, hooked } = await accountWith(404, 200);
        const [gone, stays] = hooked as [Hook, Hook];
        const eventId = await ingestOne(account);
        await settled(account, eventId);
        await register(account, stays.url);
        const skipped = await start(account, "failed", {});
        expect(counts(await completed(account, skipped))).toEqual([1, 0, 0, 0, 0, 1]);
        expect(brief(await settled(account, eventId)).map(([url]) => url)).toEqual([gone.url, stays.url]);
        const fresh = hooks.hook();
        await register(account, stays.url, fresh.url);
        const answer = await start(account, "failed", {});
        expect(counts(await completed(account, answer))).toEqual([1, 1, 1, 0, 0, 0]);
        expect(brief(await settled(account, eventId)).map(([url]) => url)).toEqual([stays.url, fresh.url]);
        const { body: attempts } = await account.get(`/v1/events/${eventId}/attempts`);
        expect(attempts.map(({ targetWebhook }: RecordBody) => targetWebhook)).toContain(gone.url);
        expect([gone.received.length, stays.received.length, fresh.received.length]).toEqual([1, 1, 1]);
        return answer;
      },
      status: 202,
    },
    ...refused("failed", badLabels),
  });
});
