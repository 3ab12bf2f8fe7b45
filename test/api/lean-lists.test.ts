// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type Hooks, ingestOne, type RecordBody, register, settled, startHooks } from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/** Beyond the specification: lists without payloads, `payload=false`, or with how they begin, `payload=start`. */

interface World {
  server: TestApp;
  /** Three events, all delivered. */
  ada: TestAccount;
}

let hooks: Hooks;
let ada: TestAccount;
afterAll(() => hooks.stop());
const server = useServer();

beforeAll(async () => {
  hooks = await startHooks();
  ada = await server().account();
  await register(ada, hooks.hook().url);
  for (let n = 0; n < 3; n += 1) await settled(ada, await ingestOne(ada, { n, secret: "payload-of-ada" }));
});

const world = (): World => ({ server: server(), ada });

/** The same answer as without `payload=false`, but for the payloads. */
const lean = (path: string): Scenario<World> => ({
  section: "rules 7",
  request: ({ ada }) => ada.get(`${path}payload=false`),
  status: 200,
  never: () => ["payload-of-ada"],
  async then({ ada }, { body }) {
    const whole = (await ada.get(path.slice(0, -1))).body;
    expect(whole.events.length).toBeGreaterThan(0);
    for (const { originalPayload } of whole.events) expect(originalPayload.secret).toBe("payload-of-ada");
    const events = whole.events.map((record: RecordBody) => ({ ...record, originalPayload: null }));
    expect(body).toEqual({ ...whole, events });
    expect(Object.keys(body.events[0])).toEqual(Object.keys(whole.events[0]));
  },
});

const refused = (path: string, value: string): Scenario<World> => ({
  section: "rules 7",
  request: ({ ada }) => ada.get(`${path}?payload=${value}`),
  status: 400,
  exact: true,
  body: { message: "payload must be true, false or start.", code: "invalid_request" },
});

const badValues = ["", "1", "0", "no", "FALSE", "null", "false,true"];
const rows = (path: string) =>
  Object.fromEntries(badValues.map((value) => [`?payload=${value}`, refused(path, value)] as const));

describe("payload=false", () => {
  scenarios<World>("GET /v1/events", world, {
    "is the list without payloads": lean("/v1/events?"),
    "is a page without payloads": lean("/v1/events?page=1&size=2&"),
    "is a filtered list without payloads, its total as before": lean("/v1/events?from=2020-01-01&"),
    "payload=true is as without it": {
      section: "rules 7",
      request: ({ ada }) => ada.get("/v1/events?payload=true"),
      status: 200,
      then: async ({ ada }, { text }) => expect(text).toBe((await ada.get("/v1/events")).text),
    },
    "payload=start is how each payload begins, in whole characters": {
      section: "rules 7",
      async request({ server }) {
        const bob = await server.account();
        for (const text of ["short", "é".repeat(200), "x".repeat(17_000)]) await ingestOne(bob, { text });
        return bob.get("/v1/events?payload=start");
      },
      status: 200,
      then(_, { body }) {
        const starts = body.events.map(({ payloadStart }: { payloadStart: string | null }) => payloadStart);
        expect(starts).toEqual([null, `{"text":"${"é".repeat(95)}`, '{"text":"short"}']);
        expect(new Set(body.events.map(({ originalPayload }: RecordBody) => originalPayload))).toEqual(new Set([null]));
      },
    },
    ...rows("/v1/events"),
  });

  scenarios<World>("GET /v1/events/state/{state}", world, {
    "is the list in a state without payloads": lean("/v1/events/state/DELIVERED?"),
    ...rows("/v1/events/state/DELIVERED"),
  });
});
