// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, expect } from "bun:test";
import {
  batchOf,
  gate,
  type Hooks,
  ingestOne,
  isoPattern,
  type RecordBody,
  register,
  settled,
  startHooks,
  until,
} from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

interface World {
  server: TestApp;
  tenant: TestAccount;
  other: TestAccount;
  otherEventId: string;
  /** 10,000 events without a webhook: its replays take a moment. */
  busy: TestAccount;
}

let hooks: Hooks;
let world: World;
afterAll(() => hooks.stop());
const server = useServer();
beforeAll(async () => {
  hooks = await startHooks();
  const [tenant, other, busy] = await Promise.all([server().account(), server().account(), server().account()]);
  await busy.setTier("enterprise");
  const otherEventId = await ingestOne(other, { secret: "payload-of-other" });
  for (let i = 0; i < 10; i += 1) await batchOf(server(), busy, 1000);
  world = { server: server(), tenant, other, otherEventId, busy };
});

/** More than go out to one webhook at once. */
const sixty = 60;

const error = (code: string) => ({ message: expect.stringMatching(/^\S.{10,}\.$/), code });
const never = ({ other, otherEventId }: World) => [other.id, otherEventId, "payload-of-other"];

const fields = "id,kind,replayGroupId,status,selected,queued,delivered,failed,superseded,skipped,createdAt,completedAt";

const shape = {
  id: expect.stringMatching(/^rpl_/),
  kind: "all",
  replayGroupId: "look",
  status: expect.stringMatching(/^(waiting|running|completed|cancelled)$/),
  selected: 10_000,
  createdAt: expect.stringMatching(isoPattern),
};

/** Starts a bulk replay and returns where its progress is. */
const begin = async (busy: TestAccount) =>
  (await busy.post("/v1/events/replays/all", { replayGroupId: "look" })).headers.get("location") ?? "";

scenarios("GET /v1/events/replays", () => world, {
  "the newest first": {
    section: "rules 10",
    given: async ({ busy }) => [await begin(busy), await begin(busy)],
    request: ({ busy }) => busy.get("/v1/events/replays?size=1"),
    status: 200,
    never,
    async then({ busy }, { body }) {
      expect(Object.keys(body)).toEqual(["replays", "total"]);
      expect(Object.keys(body.replays[0]).join()).toBe(fields);
      expect({ ...body.replays[0] }).toMatchObject(shape);
      const second = (await busy.get("/v1/events/replays?size=1&page=1")).body;
      expect([body.total, second.replays.length, second.total]).toEqual([2, 1, 2]);
      expect(body.replays[0].createdAt >= second.replays[0].createdAt).toBe(true);
    },
  },
  "an account without one": {
    section: "rules 10",
    request: ({ tenant }) => tenant.get("/v1/events/replays"),
    status: 200,
    exact: true,
    body: { replays: [], total: 0 },
  },
  "a page size beyond 1,000": {
    section: "rules 10",
    request: ({ tenant }) => tenant.get("/v1/events/replays?size=1001"),
    status: 400,
    exact: true,
    body: error("invalid_request"),
  },
});

scenarios("GET /v1/events/replays/{id}", () => world, {
  "the replay as it stands": {
    section: "rules 10",
    request: async ({ busy }) => busy.get(await begin(busy)),
    status: 200,
    body: shape,
    never,
  },
  "a suspension by the operator holds it up, and the end of it lets it go on": {
    section: "rules 4",
    async request({ server: { request, operatorToken }, busy }) {
      const location = await begin(busy);
      await request("POST", `/operator/tenants/${busy.id}/suspend`, { token: operatorToken });
      expect((await busy.post("/v1/events/replays/all", { replayGroupId: "g" })).status).toBe(403);
      expect((await busy.get(location)).body.status).not.toBe("completed");
      await request("POST", `/operator/tenants/${busy.id}/resume`, { token: operatorToken });
      return until(
        () => busy.get(location),
        ({ body }) => body.status === "completed",
      );
    },
    status: 200,
    then: (_, { body }) => expect([body.selected, body.skipped]).toEqual([10_000, 10_000]),
  },
  "another account's replay": {
    section: "spec: Authentication",
    request: async ({ tenant, busy }) => tenant.get(await begin(busy)),
    status: 404,
    exact: true,
    body: error("replay_not_found"),
  },
});

scenarios("DELETE /v1/events/replays/{id}", () => world, {
  "stops what has not been sent: records that wait are again what they were": {
    section: "rules 10",
    async request() {
      const account = await server().account();
      await account.setTier("enterprise");
      const held = gate();
      const hook = hooks.hook(404);
      await register(account, hook.url);
      const all = "/v1/events?size=1000&payload=false";
      const { eventIds } = (await batchOf(server(), account, sixty)).body;
      for (const id of eventIds) await settled(account, id);
      const before: RecordBody[] = (await account.get(all)).body.events;
      // Those in flight get no answer meanwhile, so the others wait.
      hook.answer = held.answer;
      const location = await begin(account);
      await hook.whenReceived(sixty + 1);
      await until(
        () => account.get(location),
        ({ body }) => body.queued === sixty,
      );
      const answer = await account.delete(location);
      const sent = hook.received.length - sixty;
      held.open();
      const ended = await until(
        () => account.get(location),
        ({ body }) => body.delivered + (body.returned ?? 0) === sixty,
      );
      expect(ended.body).toMatchObject({ status: "cancelled", queued: sixty, delivered: sent, returned: sixty - sent });
      expect([sent < sixty, hook.received.length]).toEqual([true, sixty + sent]);
      const after: RecordBody[] = (await account.get(all)).body.events;
      expect(after.filter(({ state }) => state === "DELIVERED")).toHaveLength(sent);
      const returned = after.filter(({ state }) => state !== "DELIVERED");
      expect(returned).toEqual(before.filter(({ eventId }) => returned.some((record) => record.eventId === eventId)));
      return answer;
    },
    status: 200,
    then: (_, { body }) => expect(body).toMatchObject({ status: "cancelled", queued: sixty }),
  },
  "cancels what is not queued yet": {
    section: "rules 10",
    request: async ({ busy }) => busy.delete(await begin(busy)),
    status: 200,
    async then({ busy }, { body }) {
      expect([body.status, body.completedAt]).toEqual(["cancelled", expect.stringMatching(isoPattern)]);
      expect((await busy.get(`/v1/events/replays/${body.id}`)).body).toEqual(body);
      // Once more changes nothing.
      expect((await busy.delete(`/v1/events/replays/${body.id}`)).body).toEqual(body);
    },
  },
  "another account's replay": {
    section: "spec: Authentication",
    request: async ({ tenant, busy }) => tenant.delete(await begin(busy)),
    status: 404,
    exact: true,
    body: error("replay_not_found"),
  },
});

const preview = (body: unknown, selected: number): Scenario<World> => ({
  section: "rules 10",
  request: ({ busy }) => busy.post("/v1/events/replays/preview", body),
  status: 200,
  exact: true,
  body: { selected },
});

const refused = (body: unknown, code: string): Scenario<World> => ({
  section: "rules 10",
  request: ({ busy }) => busy.post("/v1/events/replays/preview", body),
  status: 400,
  exact: true,
  body: error(code),
});

scenarios("POST /v1/events/replays/preview", () => world, {
  all: preview({ kind: "all" }, 10_000),
  failed: preview({ kind: "failed", replayGroupId: "g" }, 10_000),
  "a timeline of long ago": preview({ kind: "timeline", startTime: "2020-01-01", endTime: "2020-12-31" }, 0),
  "an unknown event": preview({ kind: "single", eventId: "evt_x" }, 0),
  "another account's event": {
    section: "rules 10",
    request: ({ tenant, otherEventId }) =>
      tenant.post("/v1/events/replays/preview", { kind: "single", eventId: otherEventId }),
    status: 200,
    exact: true,
    body: { selected: 0 },
  },
  "no kind": refused({ replayGroupId: "g" }, "field_required"),
  "an unknown kind": refused({ kind: "some" }, "invalid_request"),
  "a timeline without times": refused({ kind: "timeline" }, "field_required"),
});
