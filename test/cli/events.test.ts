import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { stripANSI } from "bun";
import {
  batchOf,
  closedPort,
  gate,
  type Hooks,
  ingestOne,
  ingestRaw,
  register,
  settled,
  startHooks,
  until,
} from "../support/api-server.ts";
import { startReceiver } from "../support/receiver.ts";
import type { Script } from "../support/scripted-io.ts";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";
import { type } from "../support/typed.ts";

let app: TestApp;
let hooks: Hooks;
let account: TestAccount;
/** Delivered, failed and delivered, by turns. */
let ids: readonly string[];
let url: string;

const rawPayload = '{ "n": 1.0, "big": 123456789012345678901234567890, "turned": "\u202e" }';

beforeAll(async () => {
  app = await startTestApp();
  hooks = await startHooks();
  account = await app.account();
  const hook = hooks.hook(200);
  await register(account, hook.url);
  const first = await ingestOne(account, { event_type: "order.paid" });
  await settled(account, first);
  hook.answer = (response) => response.writeHead(404).end('{\n  "error": "no such route"\n}\n');
  const second = (await ingestRaw(app, account.apiKey, `{"payload":${rawPayload}}`)).body.eventId;
  await settled(account, second);
  hook.answer = 200;
  const third = await ingestOne(account);
  await settled(account, third);
  ids = [first, second, third];
  url = hook.url;
});

afterAll(async () => {
  hooks.stop();
  await app.stop();
});

async function run(line: string, script: Script = {}) {
  const { ended, out, err } = type(app.url, account, line.split(" "), script);
  return { code: await ended, out: out.join("\n"), err };
}

const idsIn = (text: string) => [...text.matchAll(/evt_\w{26}/g)].map(([id]) => id);

describe("events list", () => {
  const [first, second, third] = [0, 1, 2] as const;

  test.each([
    ["", [third, second, first]],
    [" --state failed", [second]],
    [" --state DELIVERED", [third, first]],
    [" --state pending", []],
    [" --size 1", [third]],
    [" --size 1 --page 1", [second]],
    [" --from 1h", [third, second, first]],
    [" --to 1h", []],
    [" --from 2026-01-01 --to 2026-01-02", []],
    [" --type order.paid", [first]],
    [" --type order.paid --state failed", []],
    [" --code http_status", [second]],
    [" --code timeout", []],
    [" --status 404 --code http_status --from 1h", [second]],
    [" --status 500", []],
    [" --q order.paid", [first]],
    [" --q order.paid --state failed", []],
    [" --q 1234567890123 --code http_status", [second]],
    [" --q {part}", [third]],
    [" --webhook {url}", [third, second, first]],
    [" --webhook {id} --state failed --from 1h --to 2999-01-01T00:00Z", [second]],
  ])("events list%s", async (words, expected) => {
    const [webhook] = (await account.get("/v1/tenants/webhooks")).body;
    const line = `events list${words}`
      .replace("{url}", url)
      .replace("{id}", webhook.id)
      .replace("{part}", ids[2]?.slice(-8) ?? "");
    const { code, out, err } = await run(line);
    const hints = expected.length === 0 && words.includes("--state failed") ? 1 : 0;
    expect({ code, ids: idsIn(out) }).toEqual({ code: 0, ids: expected.map((n) => ids[n] ?? "") });
    expect(err).toHaveLength(hints);
    if (expected.length === 0) expect(out).toBe("No records match.");
  });

  test.each(["", " --state failed"])("of a pattern%s that is empty says that a type is none", async (state) => {
    const { out, err } = await run(`events list --type order.*${state}`);
    expect({ out, err }).toEqual({
      out: "No records match.",
      err: ["--type is one type, not a pattern. Try: a whole type, such as order.paid"],
    });
  });

  test.each(["webhook_removed", "webhook_disabled", "no_webhook", "server_restored", "unreadable"])(
    "of %s that is empty does not look for retries, which there are none of",
    async (failure) => {
      expect(await run(`events list --state failed --code ${failure}`)).toEqual({
        code: 0,
        out: "No records match.",
        err: [],
      });
    },
  );

  test.each(["wh_none", "http://example.com/no", "http://example.com/no --state failed --type order.paid"])(
    "of --webhook %s, which is not registered, says so",
    async (words) => {
      const [{ id }] = (await account.get("/v1/tenants/webhooks")).body;
      const [unknown] = words.split(" ");
      expect(await run(`events list --webhook ${words}`)).toEqual({
        code: 0,
        out: "No records match.",
        err: [`"${unknown}" is not the id or the URL of a registered webhook. Try: --webhook ${id} (${url})`],
      });
      expect((await run(`events list --webhook ${words} --json`)).err).toEqual([]);
    },
  );

  test("that is empty is shown even if nobody can say why", async () => {
    const refusing = Bun.serve({
      port: 0,
      fetch(request) {
        const { pathname, search } = new URL(request.url);
        if (pathname === "/v1/tenants/webhooks") return Response.json({ message: "Not now." }, { status: 403 });
        return fetch(`${app.url}${pathname}${search}`, { method: request.method, headers: request.headers });
      },
    });
    const words = ["events", "list", "--webhook", "wh_none"];
    const { ended, out, err } = type(refusing.url.origin, account, words);
    expect({ code: await ended, out, err }).toEqual({ code: 0, out: ["No records match."], err: [] });
    await refusing.stop(true);
  });

  test("of failed ones that is empty says where those are that will be retried", async () => {
    const waiting = await app.account();
    const hook = hooks.hook(503);
    await register(waiting, hook.url);
    const eventId = await ingestOne(waiting, { event_type: "order paid" });
    await hook.whenReceived(1);
    const list = async (...words: string[]) => {
      const { ended, out, err } = type(app.url, waiting, ["events", "list", ...words]);
      return { code: await ended, out: out.join(), err };
    };
    const hint = "Deliveries that will be retried are not listed as failed. To see them: postrider events list --state";
    expect(await list("--state", "failed", "--type", "order paid", "--from", "1h")).toEqual({
      code: 0,
      out: "No records match.",
      err: [`${hint} pending --type 'order paid' --from 1h`],
    });
    expect((await list("--state", "pending", "--type", "order paid")).out).toContain(eventId);
    expect((await list("--state", "failed", "--json")).err).toEqual([]);
    expect((await list("--state", "delivered")).err).toEqual([]);
  });

  test("is a table for people", async () => {
    const { out } = await run("events list --size 2");
    const [head, last, failed, foot] = out.split("\n");
    expect(head).toMatch(/^accepted {2,}state {2,}failure {2,}attempts {2,}event {2,}type {2,}webhook$/);
    expect(last).toMatch(new RegExp(`^\\d{4}-\\S+Z  DELIVERED {2,}1 {2,}${ids[2]}  – {2,}${url}$`));
    expect(failed).toMatch(new RegExp(`^\\S+Z  FAILED     HTTP 404 {2,}1 {2,}${ids[1]}  – {2,}${url}$`));
    expect(foot).toBe("2 records of 3. More: --page 1");
    expect((await run("events list --size 2 --page 1")).out).toEndWith("\n1 record of 3.");
    expect((await run("events list --type order.paid")).out).toContain(`  ${ids[0]}  order.paid  ${url}\n`);
    expect((await run("events list --page 9")).out).toBe("Page 9 is behind the last one.");
  });

  test("of a search that has not looked at everything says how to go on", async () => {
    const searchedTo = "2026-03-01T12:00:00.000Z";
    const [record] = JSON.parse((await run("events list --size 1 --json")).out).events;
    const further = `Searched back to ${searchedTo}; further: --to ${searchedTo}`;
    const footOf = async (page: { events: unknown[]; total: number }) => {
      const server = startReceiver({
        answer: ({ path }) =>
          Response.json(path === "/v1/tenants/me" ? { tenant_id: "t1" } : { ...page, totalIsExact: false, searchedTo }),
      });
      const { ended, out } = type(server.url, account, ["events", "list", "--q", "sought", "--size", "1"]);
      expect(await ended).toBe(0);
      await server.stop();
      return out.join("\n").split("\n").at(-1);
    };
    expect(await footOf({ events: [], total: 0 })).toBe(`No records match. ${further}`);
    expect(await footOf({ events: [record], total: 1 })).toBe(`1 record of more than 1. ${further}`);
    // What was found comes first.
    expect(await footOf({ events: [record], total: 2 })).toBe("1 record of more than 2. More: --page 1");
  });

  test("looks up a webhook's URL, which may lack its query, but no id", async () => {
    const server = startReceiver({
      answer: ({ path }) =>
        Response.json(
          path === "/v1/tenants/me" ? { tenant_id: "t1" } : path.includes("/events") ? { events: [], total: 1 } : [],
        ),
    });
    const lookUps = async (webhook: string) => {
      await type(server.url, account, ["events", "list", "--webhook", webhook]).ended;
      return server.requests.filter(({ path }) => path === "/v1/tenants/webhooks").length;
    };
    expect([await lookUps("wh_1"), await lookUps("https://a.example/hook")]).toEqual([0, 1]);
    await server.stop();
  });

  test("names no page behind the last one", async () => {
    const other = await app.account();
    await batchOf(app, other, 25);
    const foot = async (...words: string[]) => {
      const { ended, out } = type(app.url, other, ["events", "list", ...words]);
      await ended;
      return out.join().split("\n").at(-1);
    };
    expect(await foot()).toBe("20 records of 25. More: --page 1");
    expect(await foot("--page", "1")).toBe("5 records of 25.");
  });

  test("says nothing of a webhook's query, in which secrets stand", async () => {
    const other = await app.account();
    await register(other, `http://127.0.0.1:${await closedPort()}/hook?token=secret`);
    await ingestOne(other);
    const { ended, out } = type(app.url, other, ["events", "list"]);
    await ended;
    expect(out.join()).toContain("/hook");
    expect(out.join()).not.toContain("secret");
  });

  test("--json is the server's answer, payloads byte for byte", async () => {
    const { code, out } = await run("events list --state failed --json");
    expect(code).toBe(0);
    expect(out).toContain(`"originalPayload":${rawPayload},`);
    expect(out).toBe((await account.get("/v1/events/state/FAILED?payload=true")).text);
  });

  test("has colours only on a terminal that wants them", async () => {
    const red = "\u001b[31mFAILED\u001b[39m";
    const onTerminal = await run("events list", { isTerminal: true });
    expect(onTerminal.out).toContain(red);
    expect(stripANSI(onTerminal.out)).toBe((await run("events list")).out);
    expect((await run("events list", { isTerminal: true, env: { NO_COLOR: "1" } })).out).not.toContain("\u001b");
  });

  test.each([
    ["events list --state faild", 2, '"faild" is not a state. Try: --state failed'],
    [
      "events list --from yesterday",
      2,
      '--from must be a duration, or a time in ISO 8601, not "yesterday". Try: --from',
    ],
    [
      "events list --to 2026-02-30",
      2,
      '--to must be a duration, or a time in ISO 8601, not "2026-02-30". Try: --to 10m',
    ],
    ["events list --stat failed", 2, '"postrider events list" has no flag --stat. Try: --state STATE'],
    ["events lst", 2, 'There is no command "events lst". Try: postrider events list'],
    ["events", 2, '"postrider events" needs one of list, show. Try: postrider events list'],
    ["events list --size 1001", 2, "size must be at most 1000. Try: postrider help events list"],
    ["events list --page -1", 2, "page must be at least 0. Try: postrider help events list"],
    ["events list --code htp_status", 2, "code must be one of "],
    ["events list --status 99", 2, "status must be at least 100. Try: postrider help events list"],
    ["events list --server nowhere", 2, "--server must be an http or https URL"],
    ["events list --from 1h --to 2h", 2, "from must not be after to. Try: postrider help events list"],
  ])("%s: exit code %i and a remedy", async (line, expected, message) => {
    const { code, out, err } = await run(line);
    expect({ code, out }).toEqual({ code: expected, out: "" });
    expect(err).toHaveLength(1);
    expect(err[0]).toStartWith(`postrider: ${message}`);
  });

  test("a token that is none is one line, too", async () => {
    const { code, err } = await run("events list", { env: { POSTRIDER_TOKEN: "nonsense" } });
    expect({ code, err }).toEqual({ code: 1, err: [expect.stringMatching(/^postrider: POSTRIDER_TOKEN is invalid/)] });
  });
});

describe("events show", () => {
  test("shows deliveries, attempts with what was answered, the payload as submitted, and a link", async () => {
    const { code, out } = await run(`events show ${ids[1]}`);
    expect(code).toBe(0);
    expect(out).toStartWith(`${ids[1]}\ntype      –\naccepted  20`);
    expect(out).toContain(`link      ${app.url}/events/${ids[1]}\n`);
    expect(out).toContain(`FAILED  ${url}\n  HTTP 404 from ${url}\n`);
    expect(out).toMatch(/ {2}1 {4}\S+Z {2}404 {5}\d+ ms .* \{ "error": "no such route" \}\n/);
    expect(out).toEndWith(`\nPayload\n${rawPayload.replace("\u202e", "\\u202e")}`);
  });

  test("--json has records and attempts as the server has them", async () => {
    const { out } = await run(`events show ${ids[1]} --json`);
    const path = `/v1/events/${ids[1]}`;
    const [records, attempts] = [await account.get(path), await account.get(`${path}/attempts`)];
    expect(out).toBe(`{"eventId":"${ids[1]}","records":${records.text},"attempts":${attempts.text}}`);
    expect(out).toContain(rawPayload);
  });

  test("of an event without a webhook says so", async () => {
    const other = await app.account();
    const eventId = await ingestOne(other);
    const { ended, out } = type(app.url, other, ["events", "show", eventId]);
    expect(await ended).toBe(0);
    expect(out.join()).toContain("FAILED  no webhook\n");
  });

  test("of an event that no webhook takes says so, as the list does", async () => {
    const other = await app.account();
    await register(other, { webhook_url: hooks.hook(200).url, event_types: ["order.paid"] });
    const eventId = await ingestOne(other);
    for (const words of [["show", eventId], ["list"]]) {
      const { ended, out } = type(app.url, other, ["events", ...words]);
      expect(await ended).toBe(0);
      expect(out.join()).toContain("  no webhook takes this type");
    }
  });

  test("of a delivery that is held back says what it waits for", async () => {
    const other = await app.account();
    const held = gate();
    await register(other, { webhook_url: hooks.hook(held.answer).url, ordered: true });
    const body = '{"payload":{},"ordering_key":"x"}';
    const ingest = async () => (await ingestRaw(app, other.apiKey, body)).body.eventId;
    const [first, second] = [await ingest(), await ingest()];
    const show = async (eventId: string) => {
      const { ended, out } = type(app.url, other, ["events", "show", eventId]);
      await ended;
      return out.join();
    };
    const waits = `  waits for ${first} with the same ordering key\n`;
    expect(await show(second)).toMatch(new RegExp(`PENDING  http:\\S+\n${waits}`));
    expect(await show(first)).not.toContain(waits);
    held.open();
    await settled(other, second);
    expect(await show(second)).not.toContain(waits);
  });

  test("of an event with an ordering key shows it, and the webhook that is paused", async () => {
    const other = await app.account();
    await register(other, { webhook_url: hooks.hook(200).url, paused: true });
    const { eventId } = (await ingestRaw(app, other.apiKey, '{"payload":{},"ordering_key":"cust\u202e1"}')).body;
    const { ended, out } = type(app.url, other, ["events", "show", eventId]);
    await ended;
    expect(out.join()).toContain("ordering key  cust?1\n");
    expect(out.join()).toMatch(/PENDING {2}http:\S+\n {2}waits: the webhook is paused\n/);
    expect(out.join()).not.toContain("next attempt");
  });

  test("marks attempts of replays, also of records that are replaced", async () => {
    const other = await app.account();
    const [gone, stays] = [hooks.hook(410), hooks.hook(200)];
    await register(other, gone.url);
    const eventId = await ingestOne(other);
    await settled(other, eventId);
    await register(other, stays.url);
    await other.post("/v1/events/replays/single", { eventId, replayGroupId: "after\u202ethe outage" });
    await settled(other, eventId);
    const { ended, out } = type(app.url, other, ["events", "show", eventId]);
    await ended;
    expect(out.join()).toMatch(new RegExp(`DELIVERED  ${stays.url}\n  replay after\\?the outage\n`));
    expect(out.join()).toMatch(new RegExp(`REPLACED  ${gone.url}\n.*\n  1    \\S+  410 `));
  });

  test("says nothing of a webhook's query, in the reason of a failure either", async () => {
    const other = await app.account();
    const refusing = `${hooks.hook(400).url}?token=secret`;
    const silent = `http://127.0.0.1:${await closedPort()}/hook?token=secret`;
    for (const [webhook, reason] of [
      [refusing, /^ {2}HTTP 400 from \S+$/m],
      [silent, /^ {2}Connection refused by \S+\/hook$/m],
    ] as const) {
      await register(other, webhook);
      const eventId = await ingestOne(other);
      await until(
        () => other.get(`/v1/events/${eventId}/attempts`),
        ({ body }) => body.length === 1,
      );
      const { ended, out } = type(app.url, other, ["events", "show", eventId]);
      await ended;
      expect(out.join()).toMatch(reason);
      expect(out.join()).not.toContain("secret");
    }
  });

  test.each([
    ["events show evt_1", 1, 'The account has no event "evt_1". Try: postrider events list'],
    ["events show ../tenants/me", 1, 'The account has no event "../tenants/me". Try: postrider events list'],
    ["events show ..", 2, '".." is not an id. Try: postrider events list'],
    ["events show", 2, '"postrider events show" needs ID. Try: postrider events show ID'],
  ])("%s: exit code %i and a remedy", async (line, expected, message) => {
    const { code, out, err } = await run(line);
    expect({ code, out, err }).toEqual({ code: expected, out: "", err: [`postrider: ${message}`] });
  });
});
