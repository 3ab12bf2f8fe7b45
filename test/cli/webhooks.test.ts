import { describe, expect, test } from "bun:test";
import { runCommand } from "../../src/cli/run.ts";
import { inOwnWords, isOfTyped } from "../../src/cli/webhooks/change.ts";
import { batchOf, closedPort, ingestOne, register, settled, until } from "../support/api-server.ts";
import { type ReceivedRequest, startReceiver } from "../support/receiver.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import type { TestAccount } from "../support/test-app.ts";
import { type, useTyped } from "../support/typed.ts";

const relay = useTyped();
const { run } = relay;

/** Two may be added to those that it has. */
async function withWebhooks(...webhooks: Parameters<typeof register>[1][]): Promise<TestAccount> {
  const account = await relay.app.account();
  const limits = { webhooks: webhooks.length + 2 };
  await relay.app.request("PUT", `/operator/tenants/${account.id}/limits`, {
    token: relay.app.operatorToken,
    body: limits,
  });
  await register(account, ...webhooks);
  return account;
}

const settingsOf = async (account: TestAccount) => (await account.get("/v1/tenants/webhooks?expand=true")).body;

const everySetting = {
  ...{ name: "Shop", event_types: ["order.*"], ordered: true, paused: true, rate_limit: 50, max_concurrency: 3 },
  headers: { Authorization: "Bearer 0123456789" },
};

describe("webhooks list", () => {
  test("is a table for people, with how the latest deliveries went", async () => {
    const [good, bad] = [relay.hooks.hook(200), relay.hooks.hook(404)];
    const account = await withWebhooks(
      { webhook_url: `${good.url}?token=secret`, name: "Sh\u202eop", event_types: ["order.*", "invoice.paid"] },
      bad.url,
      { webhook_url: "http://127.0.0.1:9000/paused", paused: true, event_types: ["none"] },
    );
    await settled(account, await ingestOne(account, { event_type: "order.paid" }));
    const [first, second, third] = await settingsOf(account);
    const { code, out } = await run(account, "webhooks list");
    expect(code).toBe(0);
    expect(out.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["webhook", "name", "state", "delivered", "failed", "pending", "failure", "types", "url"],
      [first.id, "Sh?op", "active", "1", "0", "0", "order.*,invoice.paid", good.url],
      [second.id, "–", "active", "0", "1", "0", "HTTP 404", "all", bad.url],
      [third.id, "–", "paused", "0", "0", "0", "none", "http://127.0.0.1:9000/paused"],
      ["3 webhooks. The latest 100 deliveries to each are counted; a failure may be of any of the last 24 hours."],
    ]);

    bad.answer = 200;
    await settled(account, await ingestOne(account));
    expect((await run(account, "webhooks list")).out).not.toContain("HTTP 404");
  });

  test("shows a failure that is not among the latest deliveries, until one has succeeded since", async () => {
    const bad = relay.hooks.hook(404);
    const account = await withWebhooks(bad.url);
    await settled(account, await ingestOne(account));
    await register(account, { webhook_url: bad.url, paused: true });
    const { body } = await batchOf(relay.app, account, 100);
    const cells = async () => (await run(account, "webhooks list")).out.split("\n")[1]?.split(/ {2,}/).slice(2, 7);
    expect(await cells()).toEqual(["paused", "0", "0", "100", "HTTP 404"]);

    bad.answer = 200;
    await register(account, { webhook_url: bad.url, paused: false });
    await settled(account, body.eventIds.at(-1));
    expect((await cells())?.at(-1)).toBe("all");
  });

  test("also one that is in none of the hundred largest groups", async () => {
    const letter = (n: number) => String.fromCharCode(97 + n);
    const noisy = relay.hooks.hook((response, nth) => {
      const way = nth % 101;
      response.writeHead(422).end(`no ${letter(way % 26)}${letter(Math.floor(way / 26))}`);
    });
    const [loud, quiet] = [
      { webhook_url: noisy.url, event_types: ["loud"] },
      { webhook_url: relay.hooks.hook(404).url, event_types: ["quiet"] },
    ];
    const account = await withWebhooks(loud, quiet);
    await settled(account, await ingestOne(account, { type: "quiet" }));
    await batchOf(relay.app, account, 202, { type: "loud" });
    await until(
      () => account.get("/v1/failures"),
      ({ body }) => body.total === 102 && body.groups.every(({ failed }: { failed: number }) => failed === 2),
    );
    await register(account, loud, { ...quiet, paused: true });
    await batchOf(relay.app, account, 100, { type: "quiet" });
    const { out } = await run(account, "webhooks list");
    expect(out.split("\n")[2]?.split(/ {2,}/).slice(2, 7)).toEqual(["paused", "0", "0", "100", "HTTP 404"]);
  });

  test("is what `webhooks` alone means, and --json is the server's list with all settings", async () => {
    const account = await withWebhooks(relay.hooks.hook().url);
    expect((await run(account, "webhooks")).out).toBe((await run(account, "webhooks list")).out);
    const { text } = await account.get("/v1/tenants/webhooks?expand=true");
    for (const line of ["webhooks --json", "webhooks list --json"]) {
      expect(await run(account, line)).toMatchObject({ code: 0, out: text, err: [] });
    }
  });

  test("that is empty says how to add one", async () => {
    expect(await run(await relay.app.account(), "webhooks")).toMatchObject({
      code: 0,
      out: "The account has no webhooks. To add one: postrider webhooks add URL",
    });
  });
});

describe("webhooks add", () => {
  test.each([
    ["", { name: "", event_types: null }],
    [" --name Orders", { name: "Orders", event_types: null }],
    [" --type order.*", { name: "", event_types: ["order.*"] }],
    [" --type order.*,invoice.paid --name Orders", { name: "Orders", event_types: ["order.*", "invoice.paid"] }],
  ])("URL%s prints the id and leaves the others as they are", async (flags, expected) => {
    const account = await withWebhooks(
      { webhook_url: `${relay.hooks.hook().url}?token=secret`, ...everySetting },
      { webhook_url: relay.hooks.hook().url, name: "Second" },
    );
    const before = await settingsOf(account);
    const { url } = relay.hooks.hook();
    const { code, out, err } = await run(account, `webhooks add ${url}${flags}`);
    const [first, second, added] = await settingsOf(account);
    expect({ code, out }).toEqual({ code: 0, out: added.id });
    expect(err).toEqual([`To send it a test event: postrider webhooks test ${added.id}`]);
    expect([first, second]).toEqual(before);
    expect(added).toMatchObject({ url, paused: false, headers: null, ...expected });
  });

  test("--json prints the webhook with all its settings", async () => {
    const account = await withWebhooks();
    const { out } = await run(account, `webhooks add ${relay.hooks.hook().url} --json`);
    expect(out).toBe(JSON.stringify((await settingsOf(account))[0]));
  });

  const patternRule = "--type must be words of letters, digits, _ and - joined by dots, ";
  const urlRemedy = "Try: postrider webhooks add https://example.com/hook";
  const schemeRule = 'URL must start with "https://" (or "http://" before localhost or a loopback address).';

  test.each([
    ["ftp://x", 2, `${schemeRule} ${urlRemedy}`],
    ["not-a-url", 2, `${schemeRule} ${urlRemedy}`],
    ["https://", 2, `URL must be valid. ${urlRemedy}`],
    ["http://user:pw@localhost:1/", 2, `URL must not contain a user name or password. ${urlRemedy}`],
    [
      "{present}",
      1,
      "{present} is already registered as {id}. To change it, try: the dashboard, or PUT /v1/tenants/webhooks",
    ],
    [
      "{respelt}",
      1,
      "{respelt} is already registered as {id}. To change it, try: the dashboard, or PUT /v1/tenants/webhooks",
    ],
    ["http://localhost:9000/ --type a,b..c", 2, patternRule],
    ["http://localhost:9000/ --type order:paid", 2, patternRule],
    [
      "http://localhost:9000/ --type *",
      2,
      `${patternRule}and may end with .*, such as order.paid or order.*; without --type it takes every event. ` +
        "Try: --type 'order.*,invoice.paid'",
    ],
    ["http://localhost:9000/ --type=", 2, patternRule],
    [`http://localhost:9000/ --type ${"a,".repeat(50)}a`, 2, "--type must have at most 50 patterns."],
    [`http://localhost:9000/ --name ${"x".repeat(201)}`, 2, "--name must have at most 200 characters."],
  ])("%s: the server's rule, in the words of the command line", async (typed, expected, message) => {
    const { url } = relay.hooks.hook();
    const account = await withWebhooks(url);
    const [{ id }] = await settingsOf(account);
    const respelt = url.replace("/hook/", "/./hook/");
    const filled = (text: string) => text.replace("{present}", url).replace("{respelt}", respelt).replace("{id}", id);
    const { code, out, err } = await run(account, filled(`webhooks add ${typed}`));
    expect({ code, out, count: err.length }).toEqual({ code: expected, out: "", count: 1 });
    expect(err[0]).toStartWith(`postrider: ${filled(message)}`);
    expect(await settingsOf(account)).toHaveLength(1);
  });

  test.each([
    ["[1].webhook_url must not contain a fragment (#).", true],
    ["[0].webhook_url must not contain a fragment (#).", false],
    ["The body must have at most 1 entry on this account.", false],
  ])("%s: whether that is a mistake on the command line: %p", (message, isMistake) => {
    const listed = [{ id: "wh_1", url: "https://a.example/", name: "" }];
    const entries = [{ webhook_url: "https://a.example/" }, { webhook_url: "https://b.example/" }];
    expect(isOfTyped(inOwnWords(message, entries, listed))).toBe(isMistake);
  });

  test("of what an account registered that may have no more says so, not to remove it", async () => {
    const account = await relay.app.account();
    const { url } = relay.hooks.hook();
    await register(account, `${url}?token=secret`);
    const [{ id }] = await settingsOf(account);
    expect((await run(account, `webhooks add ${url}?token=secret`)).err).toEqual([
      `postrider: ${url} is already registered as ${id}. To change it, try: the dashboard, or PUT /v1/tenants/webhooks`,
    ]);
  });

  test("of more than the account may have says how to make room", async () => {
    const account = await relay.app.account();
    await register(account, relay.hooks.hook().url);
    const { code, err } = await run(account, `webhooks add ${relay.hooks.hook().url}`);
    expect({ code, err }).toEqual({
      code: 1,
      err: [
        "postrider: The list of webhooks must have at most 1 entry on this account; remove some or ask for a higher limit. Try: postrider webhooks remove ID|URL",
      ],
    });
  });
});

describe("changes at the same moment", () => {
  test("undo none of each other", async () => {
    const account = await withWebhooks(relay.hooks.hook().url, relay.hooks.hook().url, relay.hooks.hook().url);
    const [first, second, third] = await settingsOf(account);
    const { url } = relay.hooks.hook();
    const lines = [`add ${url}`, `remove ${first.id} --yes`, `pause ${second.id}`, `remove ${third.id} --yes`];
    const ended = await Promise.all(lines.map((line) => run(account, `webhooks ${line}`)));
    expect(ended.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(await settingsOf(account)).toMatchObject([{ id: second.id, paused: true }, { url }]);
  });
});

describe("webhooks remove", () => {
  test("asks first, and leaves the others as they are", async () => {
    const { url } = relay.hooks.hook();
    const stays = { webhook_url: relay.hooks.hook().url, ...everySetting };
    const account = await withWebhooks(`${url}?token=secret`, stays);
    const [{ id }, other] = await settingsOf(account);
    const question = `This removes ${id} (${url}) with its settings, and what waits for it fails. Continue? [y/N] `;
    const refused = { code: 1, out: "", err: ["Nothing was removed."], questions: [question] };
    expect(await run(account, `webhooks remove ${id}`, { answers: ["n"] })).toEqual(refused);
    expect(await settingsOf(account)).toHaveLength(2);
    expect(await run(account, `webhooks remove ${url}`, { answers: ["yes"] })).toEqual({
      code: 0,
      out: `${id} is removed.`,
      err: ["What waited for it fails. To see it: postrider events list --code webhook_removed"],
      questions: [question],
    });
    expect(await settingsOf(account)).toEqual([other]);
  });

  test("needs --yes in a script, and then what waits for it fails", async () => {
    const account = await withWebhooks({ webhook_url: relay.hooks.hook().url, paused: true });
    const [{ id }] = await settingsOf(account);
    const eventId = await ingestOne(account);
    expect(await run(account, `webhooks remove ${id}`)).toMatchObject({
      code: 1,
      err: ["postrider: Removing a webhook needs confirmation. Try: --yes"],
    });
    expect(await run(account, `webhooks remove ${id} --yes`)).toMatchObject({ code: 0, questions: [] });
    await settled(account, eventId);
    expect((await run(account, "events list --code webhook_removed")).out).toContain(eventId);
  });

  test("keeps what somebody else adds while the question is open", async () => {
    const [gone, added] = [relay.hooks.hook().url, relay.hooks.hook().url];
    const account = await withWebhooks(gone);
    const { io } = createScriptedIo({ env: { POSTRIDER_URL: relay.app.url, POSTRIDER_TOKEN: account.jwt } });
    const ask = async () => {
      await register(account, gone, added);
      return "y";
    };
    expect(await runCommand(["webhooks", "remove", gone], { ...io, ask })).toBe(0);
    expect((await settingsOf(account)).map(({ url }: { url: string }) => url)).toEqual([added]);
  });
});

describe("webhooks test", () => {
  const closed = closedPort();

  test.each([
    [200, 0, ["outcome  acknowledged", "status   200", "answer   –"]],
    [503, 1, ["outcome  not acknowledged", "status   503", "reason   HTTP 503 from {url}"]],
    ["closed", 1, ["outcome  not acknowledged", "status   –", "reason   Connection refused by {url}"]],
  ] as const)("of a receiver that answers %s has exit code %i", async (answer, expected, lines) => {
    const url = answer === "closed" ? `http://127.0.0.1:${await closed}/hook` : relay.hooks.hook(answer).url;
    const account = await withWebhooks(`${url}?token=secret`);
    const { code, out } = await run(account, `webhooks test ${url}`);
    expect(code).toBe(expected);
    expect(out).toStartWith(`webhook  ${url}\n`);
    for (const line of lines) expect(out).toContain(`\n${line.replace("{url}", url)}`);
    expect(out).toMatch(/\ntook {5}\d+ ms\n/);
  });

  test("shows how the answer begins, and --json is the attempt", async () => {
    const hook = relay.hooks.hook((response) => response.end("tha\u202enks\nat length"));
    const account = await withWebhooks(hook.url);
    const [{ id }] = await settingsOf(account);
    const { out: pairs } = await run(account, `webhooks test ${id}`);
    expect(pairs).toEndWith("\nanswer   tha?nks at length");
    expect(pairs).toContain(`\nevent    ${hook.received[0]?.headers["service-event-id"]}\n`);
    const { code, out } = await run(account, `webhooks test ${id} --json`);
    expect({ code, attempt: JSON.parse(out) }).toMatchObject({ code: 0, attempt: { statusCode: 200, error: null } });
    expect(hook.received).toHaveLength(2);
  });
});

describe("webhooks test, of one that gets nothing but tests or leads elsewhere", () => {
  test("says that it is paused or disabled, and what ends that", async () => {
    const hook = relay.hooks.hook(410);
    const account = await withWebhooks(hook.url);
    const [{ id }] = await settingsOf(account);
    expect((await run(account, `webhooks test ${id}`)).err).toEqual([]);
    await run(account, `webhooks pause ${id}`);
    const paused = `Webhook ${id} is paused. Try: postrider webhooks resume ${id}`;
    expect((await run(account, `webhooks test ${id}`)).err).toEqual([paused]);
    await run(account, `webhooks resume ${id}`);
    for (let n = 0; n < 3; n += 1) await settled(account, await ingestOne(account));
    await until(
      () => settingsOf(account),
      ([{ state }]) => state === "disabled",
    );
    const disabled = `Webhook ${id} is disabled. Try: postrider webhooks enable ${id}`;
    expect((await run(account, `webhooks test ${id}`)).err).toEqual([disabled]);
    const futile = "Nothing would be sent: no webhook that could get it is registered and enabled.";
    expect((await run(account, "replay all --preview")).err).toEqual([futile, disabled]);
  });

  test.each([
    ["https://new.example/hook?key=secret#part", "https://new.example/hook"],
    ["//user:secret@new.example/hook", "http://new.example/hook"],
    ["mailto:somebody@new.example", null],
  ])("shows where a redirect to %s leads, as `events show` does", async (location, shown) => {
    const { url } = relay.hooks.hook((response) => response.writeHead(301, { location }).end());
    const account = await withWebhooks(url);
    const { out } = await run(account, `webhooks test ${url}`);
    const reason = `HTTP 301 from ${url}${shown === null ? "" : ` to ${shown}; redirects are not followed`}`;
    expect(out).toContain(`\nreason   ${reason}\n`);
    const eventId = await ingestOne(account);
    await until(
      async () => (await account.get(`/v1/events/${eventId}`)).body[0],
      ({ attempts }) => attempts > 0,
    );
    expect((await run(account, `events show ${eventId}`)).out).toContain(`\n  ${reason}\n`);
  });
});

describe("webhooks pause, resume and enable", () => {
  test("change the state of one webhook and nothing else", async () => {
    const { url } = relay.hooks.hook();
    const account = await withWebhooks({ webhook_url: url, ...everySetting, paused: false }, relay.hooks.hook().url);
    const before = await settingsOf(account);
    const [{ id }, second] = before;
    expect(await run(account, `webhooks pause ${url}`)).toMatchObject({ code: 0, out: `${id} is paused.`, err: [] });
    expect(await settingsOf(account)).toEqual([{ ...before[0], paused: true, state: "paused" }, second]);
    expect((await run(account, `webhooks resume ${id} --json`)).out).toBe(JSON.stringify(before[0]));
    expect(await settingsOf(account)).toEqual(before);
  });

  test("enable ends that a webhook is disabled, which resume does not", async () => {
    const account = await withWebhooks(relay.hooks.hook(410).url);
    for (let n = 0; n < 3; n += 1) await settled(account, await ingestOne(account));
    const [{ id }] = await until(
      () => settingsOf(account),
      ([{ state }]) => state === "disabled",
    );
    for (const [verb, state] of [
      ["resume", "disabled"],
      ["enable", "active"],
      ["enable", "active"],
    ]) {
      expect(await run(account, `webhooks ${verb} ${id}`)).toMatchObject({ code: 0, out: `${id} is ${state}.` });
    }
  });
});

describe("what cannot be done is one line with a remedy", () => {
  test.each([
    ["webhooks lst", 2, 'There is no command "webhooks lst". Try: postrider webhooks list'],
    ["webhooks --jsn", 2, '"postrider webhooks list" has no flag --jsn. Try: --json'],
    ["webhooks add", 2, '"postrider webhooks add" needs URL. Try: postrider webhooks add URL'],
    ["webhooks test", 2, '"postrider webhooks test" needs ID|URL. Try: postrider webhooks test ID|URL'],
    ...["remove", "test", "pause", "resume", "enable"].map((verb): [string, number, string] => [
      `webhooks ${verb} wh_1`,
      1,
      "The account has no webhooks. Try: postrider webhooks add URL",
    ]),
  ])("%s: exit code %i", async (line, expected, message) => {
    const { code, out, err } = await run(await relay.app.account(), line);
    expect({ code, out, err }).toEqual({ code: expected, out: "", err: [`postrider: ${message}`] });
  });

  test("a webhook that is not registered, or that two could be", async () => {
    const { url } = relay.hooks.hook();
    const account = await withWebhooks(`${url}?token=secret`, `${url}?token=other`);
    const [one, two] = await settingsOf(account);
    const named = `${one.id} (${url}), or ${two.id} (${url})`;
    expect((await run(account, "webhooks test http://a.example/?b")).err).toEqual([
      `postrider: "http://a.example/" is not the id or the URL of a registered webhook. Try: ${named}`,
    ]);
    expect((await run(account, `webhooks test ${url}?token=2`)).err).toEqual([
      `postrider: "${url}" is registered, but not with that query. Try: ${named}`,
    ]);
    expect((await run(account, `webhooks test ${url}`)).err).toEqual([
      `postrider: 2 webhooks have the URL ${url}, with different queries. Try: ${named}`,
    ]);
  });

  /** A server with an empty list, on which `put` answers the change. */
  async function add(put: () => Response) {
    const server = startReceiver({
      answer({ method, path }: ReceivedRequest) {
        if (path === "/v1/tenants/me") return Response.json({ tenant_id: "t1" });
        return method === "PUT" ? put() : Response.json([]);
      },
    });
    const { ended, err } = type(server.url, { jwt: "x" }, ["webhooks", "add", "https://a.example"]);
    const code = await ended;
    const puts = server.requests.filter(({ method }) => method === "PUT").length;
    await server.stop();
    return { code, err, puts, url: server.url };
  }

  test("a change that may have arrived is not repeated", async () => {
    const { url, ...outcome } = await add(() => new Response("bad gateway", { status: 502 }));
    const message = `${url} answered 502. The webhooks may have changed. Try: postrider webhooks list`;
    expect(outcome).toEqual({ code: 1, err: [`postrider: ${message}`], puts: 1 });
  });

  test("a webhook that somebody else's change has removed again", async () => {
    const message = "Somebody else has just replaced the list, without this webhook. Try: postrider webhooks list";
    expect(await add(() => Response.json([]))).toMatchObject({ code: 1, err: [`postrider: ${message}`], puts: 1 });
  });
});
