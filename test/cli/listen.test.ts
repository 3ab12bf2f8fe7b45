import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { once } from "node:events";
import net from "node:net";
import { faultsOf, readKeySet } from "../../src/cli/demo/verify.ts";
import { runCommand } from "../../src/cli/run.ts";
import {
  batchOf,
  closedPort,
  createTravelClock,
  ingestOne,
  ingestRaw,
  register,
  until,
} from "../support/api-server.ts";
import { createSelfSigned } from "../support/certificates.ts";
import { type ListeningOptions, startListening } from "../support/listening.ts";
import { type Receiver, type ReceiverOptions, startReceiver } from "../support/receiver.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";

let app: TestApp;
const receivers: Receiver[] = [];
const listening: ReturnType<typeof startListening>[] = [];

beforeAll(async () => {
  app = await startTestApp();
});

afterAll(async () => {
  for (const each of listening) if (each.code === null) each.interrupt();
  await Promise.allSettled(listening.map(({ ended }) => ended));
  await Promise.all(receivers.map((receiver) => receiver.stop()));
  await app.stop();
});

function receive(options: ReceiverOptions = {}): Receiver {
  const receiver = startReceiver(options);
  receivers.push(receiver);
  return receiver;
}

async function listen(options: Omit<ListeningOptions, "url"> & { url?: string }) {
  const started = startListening({ url: app.url, ...options });
  listening.push(started);
  await started.whenOpen();
  return started;
}

const idsOf = (receiver: Receiver) => receiver.requests.map(({ headers }) => headers.get("service-event-id"));

describe("what is forwarded", () => {
  test("the request of a delivery, byte for byte, with signatures that hold", async () => {
    const account = await app.account();
    const receiver = receive();
    await listen({ account, forwardTo: `${receiver.url}/hook?from=here` });
    const payload = '{ "n": 1.0, "big": 123456789012345678901234567890, "é": "\\ud83d\\ude00 ü", "a": 1, "a": 2 }';
    const { eventId } = (await ingestRaw(app, account.apiKey, `{"payload":${payload}}`)).body;
    const { method, path, headers, body } = await receiver.waitFor(() => true);
    expect({ method, path }).toEqual({ method: "POST", path: "/hook?from=here" });
    expect(headers.get("content-type")).toBe("application/json");
    expect(body.toString("utf8")).toStartWith(`{"eventId":"${eventId}","tenantId":"${account.id}",`);
    expect(body.toString("utf8")).toEndWith(`"payload":${payload}}`);
    const { secret } = (await account.get("/v1/tenants/signing-secret")).body;
    const jwks = (await app.request("GET", `/v1/tenants/${account.id}/jwks.json`)).body;
    const keys = { publicKeys: readKeySet(jwks), secret };
    expect(faultsOf({ headers, body }, keys, Date.now())).toEqual([]);
  });

  test("nothing on the server changes, and no webhook is needed", async () => {
    const account = await app.account();
    const receiver = receive();
    const { whenPrinted, stop } = await listen({ account, forwardTo: receiver.url });
    await ingestOne(account);
    const before = (await account.get("/v1/events")).body;
    await whenPrinted(1);
    await stop();
    expect((await account.get("/v1/events")).body).toEqual(before);
    expect(before.events).toMatchObject([{ attempts: 0, targetWebhook: "" }]);
  });

  test("what comes from now on, in the order of the events", async () => {
    const account = await app.account();
    await batchOf(app, account, 5);
    const receiver = receive();
    const { whenPrinted, err, stop } = await listen({
      account,
      forwardTo: receiver.url,
      words: ["--concurrency", "1"],
    });
    const { eventIds } = (await batchOf(app, account, 20)).body;
    await whenPrinted(20);
    expect(idsOf(receiver)).toEqual(eventIds);
    expect(await stop()).toBe(0);
    expect(err.at(-1)).toBe(`20 forwarded: 20 answered with 2xx. To continue from there: --since ${eventIds.at(-1)}`);
  });

  test("several at a time, which begin in order", async () => {
    const account = await app.account();
    const answers: (() => void)[] = [];
    const receiver = receive({
      answer: () => new Promise((resolve) => answers.push(() => resolve(new Response(null, { status: 200 })))),
    });
    const { whenPrinted } = await listen({ account, forwardTo: receiver.url, words: ["--concurrency", "3"] });
    const { eventIds } = (await batchOf(app, account, 7)).body;
    await receiver.waitFor(3);
    expect(idsOf(receiver)).toEqual(eventIds.slice(0, 3));
    // The last one that began is the first to end, and makes room for one more.
    answers[2]?.();
    await receiver.waitFor(4);
    expect(idsOf(receiver)).toEqual(eventIds.slice(0, 4));
    for (let answered = 0; answered < 7; answered += 1) {
      await until(
        () => answers.length,
        (length) => length > answered,
      );
      answers[answered]?.();
    }
    await whenPrinted(7);
    expect(idsOf(receiver)).toEqual(eventIds);
  });
});

describe("what is printed", () => {
  test("a line for people: time, answer, duration, type, and a link to the event", async () => {
    const account = await app.account();
    const receiver = receive({ answer: () => new Response(null, { status: 422 }) });
    const { whenPrinted, err, stop } = await listen({ account, forwardTo: receiver.url });
    const eventId = await ingestOne(account, { event_type: "order\u202e.paid" });
    const [line] = await whenPrinted(1);
    expect(line).toMatch(/^\d\d:\d\d:\d\d {2}422 {2}\d+ ms {2}order\?\.paid {2}http\S+$/);
    expect(line).toEndWith(`  ${app.url}/events/${eventId}`);
    await stop();
    expect(err.at(-1)).toStartWith("1 forwarded: 0 answered with 2xx, 1 with another status.");
  });

  test("an object for programs, with --json", async () => {
    const account = await app.account();
    const receiver = receive();
    const { whenPrinted } = await listen({ account, forwardTo: `${receiver.url}/x`, words: ["--json"] });
    const eventId = await ingestOne(account, { type: "order.paid" });
    const [line = ""] = await whenPrinted(1);
    expect(JSON.parse(line)).toEqual({
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      event: eventId,
      eventType: "order.paid",
      kind: "accepted",
      webhook: null,
      forwardedTo: `${receiver.url}/x`,
      status: 204,
      durationMs: expect.any(Number),
      error: null,
      attempt: 1,
      retryInMs: null,
      link: `${app.url}/events/${eventId}`,
    });
  });

  test("no answer is said in words, and the next event is tried all the same", async () => {
    const account = await app.account();
    const port = await closedPort();
    const { whenPrinted, out, err, stop } = await listen({ account, forwardTo: `localhost:${port}/hook` });
    await ingestOne(account);
    expect((await whenPrinted(1))[0]).toMatch(/ {2}connection refused {2}\d+ ms {2}http\S+$/);
    const receiver = receive({ port });
    await ingestOne(account);
    await whenPrinted(2);
    expect(out[1]).toContain("  204  ");
    expect(receiver.requests.map(({ path }) => path)).toEqual(["/hook"]);
    await stop();
    expect(err.at(-1)).toStartWith("2 forwarded: 1 answered with 2xx, 1 without a response.");
  });

  test.each([
    [400, "payload_erased", "its payload was erased"],
    [404, "event_not_found", "the event no longer exists"],
    [503, "storage_damaged", "it is damaged in storage"],
  ])("why an event cannot be sent, with %d %s, and the next one goes on", async (status, code, reason) => {
    const account = await app.account();
    const [lost, next] = [await ingestOne(account), await ingestOne(account)];
    // Passes on everything but the delivery of that event.
    const front = Bun.serve({
      port: 0,
      async fetch(request) {
        const { pathname, search } = new URL(request.url);
        const headers = { "Retry-After": "300" };
        if (pathname.includes(lost)) return Response.json({ message: "It is lost.", code }, { status, headers });
        const { method, headers: given } = request;
        const body = method === "POST" ? await request.text() : null;
        return fetch(`${app.url}${pathname}${search}`, { method, headers: given, body });
      },
    });
    const url = front.url.origin;
    const words = ["--since", "1h", "--concurrency", "1"];
    const { whenPrinted, err, stop } = await listen({ url, account, forwardTo: receive().url, words });
    const lines = (await whenPrinted(2)).map((line) => line.split("  "));
    expect(lines.map(([, answer, , link]) => [answer, link])).toEqual([
      [reason, `${url}/events/${lost}`],
      ["204", `${url}/events/${next}`],
    ]);
    await stop();
    expect(err.at(-1)).toStartWith("2 forwarded: 1 answered with 2xx, 1 without a response.");
    await front.stop(true);
  });

  test("an address that does not answer within 10 s", async () => {
    const account = await app.account();
    const clock = createTravelClock();
    const receiver = receive({ answer: () => new Promise(() => {}) });
    const { whenPrinted } = await listen({ account, forwardTo: receiver.url, clock });
    await ingestOne(account);
    await receiver.waitFor(1);
    clock.travel(10_000);
    expect((await whenPrinted(1))[0]).toMatch(/ {2}no response within 10 s {2}10 s {2}http\S+$/);
  });

  test("a redirect is an answer like any other, and is not followed", async () => {
    const account = await app.account();
    const receiver = receive({ answer: () => Response.redirect("/elsewhere", 307) });
    const { whenPrinted } = await listen({ account, forwardTo: receiver.url });
    await ingestOne(account);
    expect((await whenPrinted(1))[0]).toContain("  307  ");
    expect(receiver.requests).toHaveLength(1);
  });

  test("101 is an answer like any other, and holds up no event after it", async () => {
    const account = await app.account();
    const upgrading = net.createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () =>
        socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
      );
    });
    upgrading.listen(0, "127.0.0.1");
    await once(upgrading, "listening");
    const forwardTo = `127.0.0.1:${(upgrading.address() as net.AddressInfo).port}`;
    const { whenPrinted, stop } = await listen({ account, forwardTo, words: ["--concurrency", "1"] });
    await ingestOne(account);
    await ingestOne(account);
    for (const line of await whenPrinted(2)) expect(line).toContain("  101  ");
    await stop();
    upgrading.close();
  });

  test("https on this machine needs no certificate that anybody vouches for", async () => {
    const account = await app.account();
    const receiver = receive({ tls: createSelfSigned({ hosts: ["dev.example.com"] }) });
    const { whenPrinted } = await listen({ account, forwardTo: receiver.url });
    await ingestOne(account);
    expect((await whenPrinted(1))[0]).toContain("  204  ");
  });
});

describe("--retry", () => {
  test.each([
    [[503, 500, 204], ["503 retry in 1 s", "500 retry in 2 s", "204"], "1 answered with 2xx"],
    [
      [429, 302, 503, 204],
      ["429 retry in 1 s", "302 retry in 2 s", "503"],
      "0 answered with 2xx, 1 with another status",
    ],
    [[404, 204], ["404"], "0 answered with 2xx, 1 with another status"],
  ])("2, with answers %p", async (statuses, expected, summary) => {
    const account = await app.account();
    const clock = createTravelClock();
    const answers = [...statuses];
    const receiver = receive({ answer: () => new Response(null, { status: answers.shift() ?? 204 }) });
    const { whenPrinted, out, err, stop } = await listen({
      account,
      forwardTo: receiver.url,
      clock,
      words: ["--retry", "2"],
    });
    const eventId = await ingestOne(account);
    const travelling = setInterval(() => clock.travel(500), 20);
    await whenPrinted(expected.length);
    clearInterval(travelling);
    await stop();
    const shown = out.map((line) => line.split("  "));
    expect(shown.map(([, answer, , retry = ""]) => `${answer} ${retry}`.replace(/ http.*/, ""))).toEqual(expected);
    expect(out.every((line) => line.endsWith(`/events/${eventId}`))).toBeTrue();
    expect(err.at(-1)).toStartWith(`1 forwarded: ${summary}.`);
  });

  test("an attempt is an object for programs", async () => {
    const account = await app.account();
    const clock = createTravelClock();
    const port = await closedPort();
    const words = ["--retry", "1", "--json"];
    const { whenPrinted } = await listen({ account, forwardTo: `localhost:${port}`, clock, words });
    await ingestOne(account);
    const travelling = setInterval(() => clock.travel(500), 20);
    const lines = (await whenPrinted(2)).map((line) => JSON.parse(line));
    clearInterval(travelling);
    expect(lines).toMatchObject([
      { attempt: 1, retryInMs: 1000, status: null, error: "connection refused" },
      { attempt: 2, retryInMs: null, status: null, error: "connection refused" },
    ]);
  });
});

describe("--events", () => {
  const hookStatus = (status: number) => receive({ answer: () => new Response(null, { status }) });

  async function outcomesOf(words: readonly string[], printed: number) {
    const [good, bad] = [await app.account(), hookStatus(410)];
    await good.setTier("business");
    await register(good, hookStatus(200).url, bad.url);
    const receiver = receive();
    const { whenPrinted, out, stop } = await listen({
      account: good,
      forwardTo: receiver.url,
      words: [...words, "--json"],
    });
    const eventId = await ingestOne(good);
    await whenPrinted(printed);
    await stop();
    const lines = out.map((line) => JSON.parse(line) as { event: string; kind: string; webhook: string | null });
    expect(new Set(lines.map(({ event }) => event))).toEqual(new Set([eventId]));
    for (const { kind, webhook } of lines) expect(webhook === bad.url).toBe(kind === "failed");
    return lines.map(({ kind }) => kind).sort();
  }

  test.each([
    ["failed", ["failed"]],
    ["delivered", ["delivered"]],
    ["finished", ["delivered", "failed"]],
    ["accepted", ["accepted"]],
    ["failed,accepted", ["accepted", "failed"]],
    ["failed, finished, accepted", ["accepted", "delivered", "failed"]],
  ])("%s", async (list, kinds) => {
    expect(await outcomesOf(["--events", list], kinds.length)).toEqual(kinds);
  });

  test.each([
    ["single", "a webhook"],
    ["single", "none"],
    ["all", "a webhook"],
    ["all", "none"],
  ])("replayed, by a replay of kind %s and with %s", async (kind, webhook) => {
    const account = await app.account();
    if (webhook !== "none") await register(account, hookStatus(500).url);
    const eventId = await ingestOne(account);
    const words = ["--events", "replayed", "--json"];
    const { whenPrinted, out, err, stop } = await listen({ account, forwardTo: receive().url, words });
    expect(err).toEqual([expect.stringMatching(/^Forwarding replayed events of /)]);
    for (const times of [1, 2]) {
      const body = { replayGroupId: "again", ...(kind === "single" && { eventId }) };
      const { status, headers } = await account.post(`/v1/events/replays/${kind}`, body);
      expect(status).toBe(202);
      await whenPrinted(times);
      await until(
        () => account.get(headers.get("location") ?? ""),
        (answer) => answer.body.status === "completed",
      );
    }
    await ingestOne(account);
    await stop();
    expect(out.map((line) => JSON.parse(line))).toMatchObject([
      { kind: "replayed", event: eventId, status: 204 },
      { kind: "replayed", event: eventId, status: 204 },
    ]);
  });

  test("the kind is a column of the lines for people, and the webhook is named whose delivery has ended", async () => {
    const [account, hook] = [await app.account(), hookStatus(404).url];
    await register(account, hook);
    const { whenPrinted, err } = await listen({ account, forwardTo: receive().url, words: ["--events", "failed"] });
    const eventId = await ingestOne(account);
    expect((await whenPrinted(1))[0]).toMatch(new RegExp(`  failed     ${RegExp.escape(hook)}  204  .*/${eventId}$`));
    expect(err[0]).toStartWith("Forwarding failed deliveries of ");
  });

  test("what is forwarded is said in words", async () => {
    const account = await app.account();
    const words = ["--events", "accepted,replayed,delivered"];
    const { err } = await listen({ account, forwardTo: receive().url, words });
    expect(err[0]).toStartWith("Forwarding events, replayed events and acknowledged deliveries of ");
  });
});

describe("signing in", () => {
  const words = ["listen", "--forward-to", "http://localhost:1/"];

  async function run(env: Record<string, string>, answers: string[] = [], more: readonly string[] = []) {
    const { io, out, err } = createScriptedIo({ env, answers });
    return { code: await runCommand([...words, ...more], io), out, err };
  }

  test("a wrong password ends it with 1 and a remedy, and is not shown", async () => {
    const account = await app.account();
    const env = { POSTRIDER_URL: app.url, POSTRIDER_LOGIN: account.id, POSTRIDER_PASSWORD: "Wr0ng#password" };
    const { code, out, err } = await run(env);
    expect({ code, out }).toEqual({ code: 1, out: [] });
    expect(err).toEqual([
      "postrider: loginId or password is wrong. Try: check POSTRIDER_LOGIN (or --login), POSTRIDER_PASSWORD, " +
        `and that the account is on ${app.url}.`,
    ]);
  });

  test("what the environment does not say is asked, the password without showing it", async () => {
    const account = await app.account();
    const started = startListening({
      url: app.url,
      account,
      forwardTo: receive().url,
      env: { POSTRIDER_LOGIN: "", POSTRIDER_PASSWORD: "" },
      answers: [account.id, account.password],
    });
    listening.push(started);
    await started.whenOpen();
    expect(started.questions).toEqual(["Account (tenant id or e-mail): "]);
    expect(started.secretQuestions).toEqual([`Password of ${account.id}: `]);
    expect([...started.out, ...started.err].join("\n")).not.toContain(account.password);
  });

  test.each([
    [{}, "No account to sign in to. Try: POSTRIDER_LOGIN="],
    [{ POSTRIDER_LOGIN: "t1" }, "No password for t1. Try: POSTRIDER_PASSWORD="],
  ] as [Record<string, string>, string][])("with %p and nobody to ask", async (env, start) => {
    const { code, err } = await run(env);
    expect(code).toBe(1);
    expect(err[0]).toStartWith(`postrider: ${start}`);
  });

  test("a session token stands in for both", async () => {
    const account = await app.account();
    const env = { POSTRIDER_TOKEN: account.jwt, POSTRIDER_LOGIN: "", POSTRIDER_PASSWORD: "" };
    const receiver = receive();
    const { whenPrinted, questions, secretQuestions } = await listen({ account, forwardTo: receiver.url, env });
    await ingestOne(account);
    await whenPrinted(1);
    expect([...questions, ...secretQuestions]).toEqual([]);
  });

  test("a token that is none", async () => {
    const { code, err } = await run({ POSTRIDER_URL: app.url, POSTRIDER_TOKEN: "nonsense" });
    expect(code).toBe(1);
    expect(err.join()).toStartWith("postrider: POSTRIDER_TOKEN is invalid or has expired");
  });

  test("a server that is not Postrider", async () => {
    const other = receive({ answer: () => new Response("<p>Hello</p>", { status: 404 }) });
    const env = { POSTRIDER_URL: other.url, POSTRIDER_LOGIN: "t1", POSTRIDER_PASSWORD: "x" };
    const { code, err } = await run(env);
    expect(code).toBe(1);
    expect(err).toEqual([
      `postrider: ${other.url} answered 404, which does not look like Postrider. Try: --server with the address of your server.`,
    ]);
  });

  test("a server that points elsewhere is not followed with the password", async () => {
    const elsewhere = receive();
    const other = receive({ answer: () => Response.redirect(elsewhere.url, 307) });
    const env = { POSTRIDER_URL: other.url, POSTRIDER_LOGIN: "t1", POSTRIDER_PASSWORD: "x" };
    expect(await run(env)).toMatchObject({ code: 1 });
    expect(elsewhere.requests).toEqual([]);
  });
});

describe("what is typed wrong is one line and exit code 2", () => {
  test.each([
    ["listen", '"postrider listen" needs --forward-to. Try: --forward-to http://localhost:3000/hook'],
    ...["localhost:3000", "localhost/hook", "3000", ":3000/hook", "https://a.example/", "127.0.0.1:3000"].map(
      (word) => [
        `listen ${word}`,
        `Unexpected argument "${word}" for "postrider listen". Try: postrider listen --forward-to ${word}`,
      ],
    ),
    ...["failed", "order.paid", "ftp://a.example:1/", "http://u:p@localhost:1/"].map((word) => [
      `listen ${word}`,
      `Unexpected argument "${word}" for "postrider listen". Try: postrider listen`,
    ]),
    ["listen --forward-to ftp://localhost/", '--forward-to must be an http or https address, not "ftp://localhost/".'],
    ["listen --forward-to http://", '--forward-to must be an http or https address, not "http://".'],
    ["listen --forward-to http://u:p@localhost:1/", "--forward-to must not have a user name or password. Try: "],
    ["listen --forward-to x --events faild", '"faild" is not a kind of event to forward. Try: --events failed'],
    ["listen --forward-to x --events =", '"=" is not a kind of event to forward. Try: --events accepted,'],
    ["listen --forward-to x --since yesterday", '--since must be a duration, a time or an event id, not "yesterday".'],
    ["listen --forward-to x --since 2130-01-01", '--since must not be in the future, and "2130-01-01" is.'],
    ["listen --forward-to x --concurrency 0", "--concurrency must be 1 to 100. Try: --concurrency 8"],
    ["listen --forward-to x --retry 101", '--retry must be 0 to 100, not "101". Try: --retry 3'],
    ["listen --forward-to x --retry often", '--retry must be 0 to 100, not "often". Try: --retry 3'],
  ])("%s", async (line, message) => {
    const { io, out, err } = createScriptedIo();
    expect([await runCommand(line.split(" "), io), out]).toEqual([2, []]);
    expect(err[0]).toStartWith(`postrider: ${message}`);
  });

  test.each([
    ["3000", "http://localhost:3000/"],
    [":3000/hook", "http://localhost:3000/hook"],
    ["localhost:3000/hook", "http://localhost:3000/hook"],
    ["https://dev.example.com/hook?a=b", "https://dev.example.com/hook?a=b"],
  ])("but --forward-to %s is %s", async (given, forwardTo) => {
    const account = await app.account();
    const { err } = await listen({ account, forwardTo: given });
    expect(err.find((line) => line.startsWith("Forwarding"))).toEndWith(` to ${forwardTo}. Press Ctrl+C to stop.`);
  });
});
