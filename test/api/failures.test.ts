// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, expect } from "bun:test";
import {
  batchOf,
  type Hook,
  type Hooks,
  ingestOne,
  isoPattern,
  register,
  settled,
  startHooks,
  until,
} from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { scenarios, useServer } from "./scenario.ts";

interface World {
  server: TestApp;
  /** Three events: one webhook acknowledges, one refuses with what it does not like about each. */
  tenant: TestAccount;
  good: Hook;
  bad: Hook;
  eventIds: string[];
  /** Its webhook refuses 103 events, each in another way. */
  noisy: TestAccount;
  /** Its webhook answers its only event with a status that no standard knows. */
  odd: TestAccount;
  /** It has no webhook, and one event. */
  alone: TestAccount;
  aloneId: string;
}

let world: World;
let hooks: Hooks;
afterAll(() => hooks.stop());
const server = useServer();

beforeAll(async () => {
  hooks = await startHooks();
  const [tenant, alone] = await Promise.all([server().account(), server().account()]);
  await tenant.setTier("enterprise");
  const good = hooks.hook();
  let refused = 0;
  const bad = hooks.hook((response) => void response.writeHead(422).end(`Order ${++refused} has no customer\nsecond`));
  await register(tenant, good.url, bad.url);
  const eventIds: string[] = [];
  for (let n = 0; n < 3; n++)
    eventIds.push(await ingestOne(tenant, { type: n === 1 ? "order.paid" : "order.created" }));
  for (const id of eventIds) await settled(tenant, id);
  const aloneId = await ingestOne(alone, { n: 1 });
  const noisy = await server().account();
  const way = hooks.hook((response, nth) => void response.writeHead(422).end(`no ${wordOf(nth)}`));
  await register(noisy, way.url);
  await batchOf(server(), noisy, 103, { type: "order.paid" });
  await until(
    () => noisy.get("/v1/events/state/FAILED?size=1"),
    ({ body }) => body.total === 103,
  );
  const odd = await server().account();
  await register(odd, hooks.hook(999).url);
  await settled(odd, await ingestOne(odd, { n: 1 }));
  world = { server: server(), tenant, good, bad, eventIds, noisy, odd, alone, aloneId };
});

const others = { waiting: 0, failed: 0 };

/** Without digits, which all count as the same. */
const wordOf = (n: number) => n.toString(26).replace(/\d/g, (digit) => "qrstuvwxyz".charAt(Number(digit)));

scenarios("GET /v1/failures", () => world, {
  "one group for all that fails alike, with what is known of it": {
    section: "rules 15",
    request: ({ tenant }) => tenant.get("/v1/failures"),
    status: 200,
    never: ({ alone, aloneId, good }) => [alone.id, aloneId, good.url],
    async then({ tenant, bad, eventIds }, { body }) {
      const { body: webhooks } = await tenant.get("/v1/tenants/webhooks");
      const { id } = webhooks.find(({ url }: { url: string }) => url === bad.url);
      const time = expect.stringMatching(isoPattern);
      expect(body).toEqual({
        from: expect.stringMatching(/:00:00\.000Z$/),
        to: expect.stringMatching(/:59:59\.999Z$/),
        groups: [
          {
            targetWebhook: bad.url,
            webhookId: id,
            errorCode: "http_status",
            statusCode: 422,
            answer: "Order # has no customer",
            waiting: 0,
            failed: 3,
            ongoing: true,
            lastFailedAt: time,
            firstIngestionTimestamp: time,
            lastIngestionTimestamp: time,
            eventTypes: [
              { type: "order.created", records: 2 },
              { type: "order.paid", records: 1 },
            ],
            eventIds: eventIds.toReversed(),
          },
        ],
        unlisted: [],
        total: 1,
        others,
      });
      const { body: list } = await tenant.get("/v1/events?code=http_status&status=422&size=1");
      expect(list.total).toBe(body.groups[0].failed);
    },
  },
  "of one webhook, by its URL": {
    section: "rules 15",
    request: ({ tenant, good }) => tenant.get(`/v1/failures?webhook=${encodeURIComponent(good.url)}`),
    status: 200,
    then: (_, { body }) => expect(body).toMatchObject({ groups: [], unlisted: [], total: 0, others }),
  },
  "of the hours that are asked for": {
    section: "rules 15",
    request: ({ tenant }) => tenant.get("/v1/failures?from=2020-01-01T10:20Z&to=2020-01-02T00:00Z"),
    status: 200,
    exact: true,
    body: {
      from: "2020-01-01T10:00:00.000Z",
      to: "2020-01-02T00:59:59.999Z",
      groups: [],
      unlisted: [],
      total: 0,
      others,
    },
  },
  "of the last hours that there are, and of the first, in times that can be sent back": {
    section: "rules 2",
    request: ({ tenant }) => tenant.get("/v1/failures?from=9999-12-31&to=9999-12-31"),
    status: 200,
    body: { from: "9999-12-31T00:00:00.000Z", to: "9999-12-31T23:59:59.999Z", groups: [] },
    async then({ tenant }) {
      const { body: first } = await tenant.get("/v1/failures?to=0000-01-01");
      expect([first.from, first.to]).toEqual(["0000-01-01T00:00:00.000Z", "0000-01-01T23:59:59.999Z"]);
      const { body: stats } = await tenant.get("/v1/stats?to=0000-01-01T00:00:00Z");
      expect(stats.buckets.map(({ at }: { at: string }) => at)).toEqual(["0000-01-01T00:00:00.000Z"]);
    },
  },
  "the smaller groups as one sum for each webhook, code and status": {
    section: "rules 15",
    request: ({ noisy }) => noisy.get("/v1/failures"),
    status: 200,
    async then({ noisy }, { body }) {
      const { answer, eventTypes, eventIds, ...first } = body.groups[0];
      const time = expect.stringMatching(isoPattern);
      expect([body.groups.length, body.total, body.others]).toEqual([100, 103, others]);
      expect(body.unlisted).toEqual([
        {
          ...{ ...first, failed: 3, groups: 3 },
          ...{ lastFailedAt: time, firstIngestionTimestamp: time, lastIngestionTimestamp: time },
        },
      ]);
      const { body: list } = await noisy.get("/v1/events?code=http_status&status=422&size=1");
      expect(list.total).toBe(103);
    },
  },
  "of a status that no standard knows, by which lists and replays select it": {
    section: "rules 15",
    request: ({ odd }) => odd.get("/v1/failures"),
    status: 200,
    async then({ odd }, { body }) {
      expect(body.groups).toMatchObject([{ errorCode: "http_status", statusCode: 999, failed: 1 }]);
      const list = await odd.get("/v1/events?code=http_status&status=999");
      const filter = { code: "http_status", status: 999 };
      const preview = await odd.post("/v1/events/replays/preview", { kind: "failed", ...filter });
      const replay = await odd.post("/v1/events/replays/failed", { replayGroupId: "g", ...filter });
      expect([list.body.total, preview.body, replay.status]).toEqual([1, { selected: 1 }, 202]);
    },
  },
  "what found no webhook goes on while there is none": {
    section: "rules 15",
    request: ({ alone }) => alone.get("/v1/failures"),
    status: 200,
    async then({ alone, aloneId, good }, { body }) {
      const group = { targetWebhook: "", webhookId: null, errorCode: "no_webhook", statusCode: null, answer: "" };
      expect(body.groups).toMatchObject([
        { ...group, failed: 1, ongoing: true, eventTypes: [{ type: null, records: 1 }], eventIds: [aloneId] },
      ]);
      await register(alone, good.url);
      expect((await alone.get("/v1/failures")).body.groups).toMatchObject([{ ...group, ongoing: false }]);
    },
  },
  "more than 31 days are refused": {
    section: "rules 15",
    request: ({ tenant }) => tenant.get("/v1/failures?from=2026-01-01&to=2026-02-01"),
    status: 400,
    exact: true,
    body: { message: "from must be at most 31 days before to.", code: "range_too_long" },
  },
  "an end before its start": {
    section: "rules 15",
    request: ({ tenant }) => tenant.get("/v1/failures?from=2026-01-02&to=2026-01-01"),
    status: 400,
    body: { message: "from must not be after to.", code: "invalid_request" },
  },
  "an API key": {
    section: "spec: Authentication",
    request: ({ server: { request }, tenant }) => request("GET", "/v1/failures", { token: tenant.apiKey }),
    status: 401,
    never: ({ bad }) => [bad.url],
  },
});
