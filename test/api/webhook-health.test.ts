// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, expect } from "bun:test";
import {
  gate,
  type Hook,
  type Hooks,
  ingestOne,
  isoPattern,
  register,
  startHooks,
  until,
} from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { scenarios, useServer } from "./scenario.ts";

/** Beyond the specification: what the dashboard shows of each webhook. */

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
  /** Three webhooks: one acknowledges, one refuses, one does not answer yet. */
  ada: TestAccount;
  eve: TestAccount;
}

let hooks: Hooks;
let good: Hook;
let bad: Hook;
let stuck: Hook;
let ada: TestAccount;
let eve: TestAccount;
const held = gate();
// Before the server's own: it waits for what is in flight.
afterAll(() => {
  held.open();
  hooks.stop();
});
const server = useServer();

beforeAll(async () => {
  hooks = await startHooks();
  [good, bad, stuck] = [hooks.hook(), hooks.hook(404), hooks.hook(held.answer)];
  [ada, eve] = await Promise.all([server().account(), server().account()]);
  await ada.setTier("enterprise");
});

const world = (): World => ({ server: server(), ada, eve });
const path = "/v1/tenants/webhooks/health";

const unused = {
  records: 0,
  delivered: 0,
  failed: 0,
  pending: 0,
  lastDeliveredAt: null,
  lastFailedAt: null,
  lastError: null,
  lastErrorCode: null,
};

scenarios<World>("GET /v1/tenants/webhooks/health", world, {
  "without webhooks it is empty": {
    section: "rules 9",
    request: ({ ada }) => ada.get(path),
    status: 200,
    exact: true,
    body: [],
    headers: { "Cache-Control": "no-store" },
  },
  "a webhook without deliveries": {
    section: "rules 9",
    given: ({ ada }) => register(ada, good.url, bad.url, stuck.url),
    request: ({ ada }) => ada.get(path),
    status: 200,
    exact: true,
    body: () => [good, bad, stuck].map(({ url }) => ({ id: stringMatching(/^wh_/), url, ...unused })),
  },
  "each webhook as its deliveries went, in the order of the list": {
    section: "rules 9",
    async given({ ada }) {
      for (let n = 0; n < 4; n += 1) await ingestOne(ada, { secret: "payload-of-ada" });
      await stuck.whenReceived(4);
      await until(
        async () => (await ada.get("/v1/events/state/PENDING")).body.total,
        (pending) => pending === 4,
      );
    },
    request: ({ ada }) => ada.get(path),
    status: 200,
    exact: true,
    body: () => {
      const time = stringMatching(isoPattern);
      const id = any(String);
      return [
        { ...unused, id, url: good.url, records: 4, delivered: 4, lastDeliveredAt: time, lastStatusCode: 200 },
        {
          ...unused,
          id,
          url: bad.url,
          records: 4,
          failed: 4,
          lastFailedAt: time,
          lastError: `HTTP 404 from ${bad.url}`,
          lastErrorCode: "http_status",
          lastStatusCode: 404,
        },
        { ...unused, id, url: stuck.url, records: 4, pending: 4 },
      ];
    },
    never: () => ["payload-of-ada"],
    async then({ ada }, { body }) {
      expect(Object.keys(body[0]).join()).toBe(
        "id,url,records,delivered,failed,pending,lastDeliveredAt,lastFailedAt,lastError,lastErrorCode,lastStatusCode",
      );
      const { body: list } = await ada.get("/v1/tenants/webhooks");
      expect(body.map(({ id }: { id: string }) => id)).toEqual(list.map(({ id }: { id: string }) => id));
    },
  },
  "the times are those of the attempts": {
    section: "rules 7",
    request: ({ ada }) => ada.get(path),
    status: 200,
    async then({ ada }, { body: [delivered, failed] }) {
      const { events } = (await ada.get("/v1/events")).body;
      const [ofGood, ofBad] = events;
      expect([delivered.lastDeliveredAt, failed.lastFailedAt]).toEqual([ofGood.lastAttemptAt, ofBad.lastAttemptAt]);
    },
  },
  "another account's webhooks are its own": {
    section: "spec: Authentication",
    request: ({ eve }) => eve.get(path),
    status: 200,
    exact: true,
    body: [],
  },
  "an API key": {
    section: "spec: Authentication",
    request: ({ server, ada }) => server.request("GET", path, { token: ada.apiKey }),
    status: 401,
  },
});
