// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type Hook, type Hooks, register, settled, startHooks, until } from "../support/api-server.ts";
import type { Answer, TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

interface World {
  server: TestApp;
  account: TestAccount;
  /** The first one answers 404, the second one 200. */
  bad: Hook;
  good: Hook;
  /** Of the types `order.paid` and `order.sent`, in turn; all have failed for the one and were delivered to the other. */
  eventIds: string[];
  /** When the third of them was ingested. */
  thirdAt: string;
  other: TestAccount;
  otherWebhook: string;
}

let hooks: Hooks;
let world: World;
afterAll(() => hooks.stop());
const server = useServer();
beforeAll(async () => {
  hooks = await startHooks();
  const [account, other] = await Promise.all([server().account(), server().account()]);
  await account.setTier("enterprise");
  const [bad, good] = [hooks.hook(404), hooks.hook(200)];
  await register(account, bad.url, good.url);
  await register(other, good.url);
  const otherWebhook = (await other.get("/v1/tenants/webhooks")).body[0].id;
  const eventIds: string[] = [];
  let thirdAt = "";
  for (const [i, event_type] of ["order.paid", "order.sent", "order.paid", "order.sent"].entries()) {
    await Bun.sleep(2); // so that no two share a millisecond
    const { body } = await account.ingest({ event_type, i });
    eventIds.push(body.eventId);
    const [record] = await settled(account, body.eventId);
    if (i === 2) thirdAt = record?.ingestionTimestamp ?? "";
  }
  world = { server: server(), account, bad, good, eventIds, thirdAt, other, otherWebhook };
});

const error = (code: string) => ({ message: expect.stringMatching(/^\S.{10,}\.$/), code });

const start = (account: TestAccount, kind: string, body: Record<string, unknown>) =>
  account.post(`/v1/events/replays/${kind}`, { replayGroupId: "g", ...body });

const completed = (account: TestAccount, { headers }: Answer): Promise<Answer> =>
  until(
    () => account.get(headers.get("location") ?? ""),
    ({ body }) => body.status === "completed",
  );

type Filter = (world: World) => Record<string, unknown>;

/** What each kind needs besides. */
const fieldsOf: Record<string, Filter> = {
  single: ({ eventIds }) => ({ eventId: eventIds[3] }),
  timeline: () => ({ startTime: "2026-01-01", endTime: "2100-01-01" }),
  all: () => ({}),
  failed: () => ({}),
};

/** By kind and filter: which events go out again, to the bad one and to the good one. */
const rows: [kind: string, what: string, filter: Filter, bad: number[], good: number[]][] = [
  ["failed", "a webhook by its URL", ({ bad }) => ({ webhook: bad.url }), [0, 1, 2, 3], []],
  ["failed", "a webhook that has acknowledged all", ({ good }) => ({ webhook: good.url }), [], []],
  ["failed", "a type", () => ({ type: "order.sent" }), [1, 3], []],
  ["failed", "a status", () => ({ status: 404 }), [0, 1, 2, 3], []],
  ["failed", "a status of no record", () => ({ status: 500 }), [], []],
  ["failed", "a code and a type", () => ({ code: "http_status", type: "order.paid" }), [0, 2], []],
  ["failed", "a time", ({ thirdAt }) => ({ from: thirdAt, to: thirdAt }), [2], []],
  ["all", "a code", () => ({ code: "http_status" }), [0, 1, 2, 3], []],
  ["all", "a code that no record has", () => ({ code: "timeout" }), [], []],
  ["all", "a webhook", ({ good }) => ({ webhook: good.url }), [], [0, 1, 2, 3]],
  ["all", "a type and a time", ({ thirdAt }) => ({ type: "order.paid", from: thirdAt }), [2], [2]],
  ["timeline", "a webhook and a type", ({ good }) => ({ webhook: good.url, type: "order.paid" }), [], [0, 2]],
  ["timeline", "an earlier end", ({ thirdAt }) => ({ to: thirdAt }), [0, 1, 2], [0, 1, 2]],
  ["single", "a webhook", ({ good }) => ({ webhook: good.url }), [], [3]],
  ["timeline", "a code and a status", () => ({ code: "http_status", status: 404 }), [0, 1, 2, 3], []],
  ["single", "its status", () => ({ status: 404 }), [3], []],
  ["single", "its type", () => ({ type: "order.sent" }), [3], [3]],
];

const numbers = ({ received }: Hook, since: number, ids: string[]) =>
  received
    .slice(since)
    .map(({ headers }) => ids.indexOf(headers["service-event-id"] as string))
    .sort();

const refused = (code: string, status: number, request: Scenario<World>["request"]): Scenario<World> => ({
  section: "rules 10",
  request,
  status,
  exact: true,
  body: error(code),
});

const isListed =
  /^\w+ is not a field of this request; the fields are .*replayGroupId.*, webhook, type, code, status, from, to\.$/;

/** A field that is not one, and what is said of it. Ignored, each would let the replay select more than was meant. */
const misspelt: Record<string, [field: Record<string, unknown>, message: string | RegExp]> = {
  "a letter left out": [{ webhok: "wh_1" }, "webhok is not a field of this request; perhaps webhook is meant."],
  "the name in other letters": [{ Type: "a" }, "Type is not a field of this request; perhaps type is meant."],
  "a letter too many": [{ too: "2026-01-01" }, "too is not a field of this request; perhaps to is meant."],
  "a field of the list's records": [{ targetWebhook: "https://example.com" }, isListed],
  "a filter of the lists alone": [{ replay: "rpl_1" }, isListed],
  "a name that every object has": [{ constructor: {} }, isListed],
  "no name": [{ "": 1 }, /^"" is not a field of this request; /],
  "a name as long as a body": [{ ["x".repeat(60_000)]: 1 }, /^x{100} is not a field of this request; /],
};

/** The query of a request whose filters are in its body, and what is said of it: ignored, it would be as bad. */
const inQuery: Record<string, [query: string, message: string]> = {
  "a filter": ["type=a", "type is not a parameter of this request; perhaps the field type of the body is meant."],
  "a filter that is misspelt": [
    "webhok=a",
    "webhok is not a parameter of this request; perhaps the field webhook of the body is meant.",
  ],
  "a state": [
    "state=FAILED",
    "state is not a parameter of this request; /v1/events/replays/failed selects what is FAILED.",
  ],
  "anything else": ["dry_run=1", "dry_run is not a parameter of this request; its fields belong in the body."],
};

const malformed: Record<string, Record<string, unknown>> = {
  "an empty webhook": { webhook: "" },
  "a webhook that is no string": { webhook: 7 },
  "a type that is too long": { type: "x".repeat(201) },
  "a code that there is not": { code: "oops" },
  "a status that is none": { status: 99 },
  "a status of four digits": { status: 1000 },
  "a status that is no number": { status: "404" },
  "a from that is no time": { from: "yesterday" },
  "a from after to": { from: "2026-01-02", to: "2026-01-01" },
};

describe.each(["single", "timeline", "all", "failed"] as const)("a replay that is narrowed, %s", (kind) => {
  const fieldsFor = (given: World) => ({ ...fieldsOf[kind]?.(given) });

  scenarios(`POST /v1/events/replays/${kind}`, () => world, {
    ...Object.fromEntries(
      rows
        .filter(([ofKind]) => ofKind === kind)
        .map(([, what, filter, toBad, toGood]): [string, Scenario<World>] => [
          `to ${what}; the preview says the same`,
          {
            section: "rules 10",
            async request(given) {
              const { account, bad, good, eventIds } = given;
              const before = [bad.received.length, good.received.length] as const;
              const fields = { ...fieldsFor(given), ...filter(given) };
              const selected = new Set([...toBad, ...toGood]).size;
              const preview = await account.post("/v1/events/replays/preview", { kind, ...fields });
              expect(preview.body).toEqual({ selected });
              const answer = await start(account, kind, fields);
              const { body } = await completed(account, answer);
              expect(body).toMatchObject({ selected, queued: toBad.length + toGood.length, filter: filter(given) });
              expect([numbers(bad, before[0], eventIds), numbers(good, before[1], eventIds)]).toEqual([toBad, toGood]);
              return answer;
            },
            status: 202,
          },
        ]),
    ),
    "another account's webhook": {
      ...refused("webhook_not_found", 404, (given) =>
        start(given.account, kind, { ...fieldsFor(given), webhook: given.otherWebhook }),
      ),
      never: ({ other, otherWebhook }) => [other.id, otherWebhook],
    },
    ...Object.fromEntries(
      Object.entries(malformed).map(([what, filter]) => [
        what,
        refused("invalid_request", 400, (given) => start(given.account, kind, { ...fieldsFor(given), ...filter })),
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(misspelt).map(([what, [field, message]]): [string, Scenario<World>] => [
        `an unknown field: ${what}`,
        {
          ...refused("invalid_request", 400, (given) => start(given.account, kind, { ...fieldsFor(given), ...field })),
          body: { message: expect.stringMatching(message), code: "invalid_request" },
          // The preview counts what the replay would select, so it must not count more either.
          async then(given, { text }) {
            const body = { kind, ...fieldsFor(given), ...field };
            const preview = await given.account.post("/v1/events/replays/preview", body);
            expect([preview.status, preview.text.split("; ")[0]]).toEqual([400, text.split("; ")[0] ?? ""]);
          },
        },
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(inQuery).map(([what, [query, message]]): [string, Scenario<World>] => [
        `a parameter in the URL: ${what}`,
        {
          ...refused("invalid_request", 400, (given) => start(given.account, `${kind}?${query}`, fieldsFor(given))),
          body: { message, code: "invalid_request" },
          async then(given) {
            const path = `/v1/events/replays/preview?${query}`;
            expect(await given.account.post(path, { kind, ...fieldsFor(given) })).toMatchObject({
              status: 400,
              body: { message },
            });
          },
        },
      ]),
    ),
    ...(kind === "single" && {
      "one event that the filters leave out": refused("event_not_selected", 404, ({ account, eventIds }) =>
        start(account, kind, { eventId: eventIds[0], type: "order.sent" }),
      ),
      "one that is not shows no filter": {
        section: "rules 10",
        async request({ account, eventIds }) {
          const answer = await start(account, kind, { eventId: eventIds[0] });
          expect((await completed(account, answer)).body).not.toHaveProperty("filter");
          return answer;
        },
        status: 202,
      },
    }),
  });
});

describe("what a narrowed replay would select", () => {
  const preview = (account: TestAccount, filter: Record<string, unknown>) =>
    account.post("/v1/events/replays/preview", { kind: "failed", ...filter });

  scenarios("POST /v1/events/replays/preview", () => world, {
    ...Object.fromEntries(
      [
        ["all", "startTime", "timeline"],
        ["failed", "endTime", "timeline"],
        ["timeline", "eventId", "single"],
      ].map(([kind = "", field = "", owner = ""]): [string, Scenario<World>] => [
        `the kind "${kind}" with ${field}, which its replay refuses`,
        {
          ...refused("invalid_request", 400, ({ account }) =>
            account.post("/v1/events/replays/preview", {
              ...{ kind, ...(kind === "timeline" && { startTime: "2026-01-01", endTime: "2026-01-02" }) },
              [field]: "2026-01-01",
            }),
          ),
          body: { message: `${field} belongs to the kind "${owner}" alone.`, code: "invalid_request" },
          async then({ account }) {
            expect((await start(account, kind, { [field]: "2026-01-01" })).status).toBe(400);
          },
        },
      ]),
    ),
    "for a webhook that is not registered": refused("webhook_not_found", 404, ({ account }) =>
      preview(account, { webhook: "wh_x" }),
    ),
    ...Object.fromEntries(
      Object.entries(malformed).map(([what, filter]) => [
        what,
        refused("invalid_request", 400, ({ account }) => preview(account, filter)),
      ]),
    ),
  });
});
