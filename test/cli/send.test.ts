import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArguments } from "../../src/cli/arguments.ts";
import { runCommand } from "../../src/cli/run.ts";
import { createSendCommand } from "../../src/cli/send/send.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { closedPort, createTravelClock, until } from "../support/api-server.ts";
import { type ReceivedRequest, type Receiver, startReceiver } from "../support/receiver.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";
import { startWire } from "../support/wire.ts";

const folder = mkdtempSync(join(tmpdir(), "postrider-send-"));
const receivers: Receiver[] = [];
let app: TestApp;
let account: TestAccount;

beforeAll(async () => {
  app = await startTestApp();
  account = await app.account();
  await account.setTier("business");
});

afterAll(async () => {
  await Promise.all(receivers.map((receiver) => receiver.stop()));
  await app.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface SendOptions {
  url?: string;
  env?: Record<string, string>;
  answers?: string[];
  input?: AsyncIterable<Uint8Array>;
  clock?: Clock;
}

/** `postrider send` in this process, as it would be typed. */
function begin(
  words: readonly string[],
  { url = app.url, env, answers, input, clock = systemClock }: SendOptions = {},
) {
  const terminal = createScriptedIo({
    env: { POSTRIDER_URL: url, POSTRIDER_API_KEY: account.apiKey, ...env },
    ...(answers && { answers }),
    ...(input && { input }),
  });
  const command = createSendCommand({ clock });
  return { terminal, ended: command.run(parseArguments(["send", ...words], [command]), terminal.io) };
}

async function send(words: readonly string[], options?: SendOptions) {
  const { terminal, ended } = begin(words, options);
  const { out, err, progress, secretQuestions } = terminal;
  return { code: await ended, out, err, progress, secretQuestions };
}

/** What ends in one line of the program itself. */
async function refusal(words: readonly string[], env: Record<string, string> = {}) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_URL: app.url, ...env } });
  const code = await runCommand(["send", ...words], io);
  return { code, out, err };
}

const bytes = (text: string) => new TextEncoder().encode(text);

async function* pieces(...texts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield typeof text === "string" ? bytes(text) : text;
}

/** The stored text of an event's payload. */
async function payloadOf(eventId: string): Promise<string> {
  const { text } = await account.get(`/v1/events/${eventId}`);
  return /"originalPayload":(.*),"attempts"/.exec(text)?.[1] ?? "";
}

async function receivedBy(answer: (request: ReceivedRequest) => Response | Promise<Response>): Promise<Receiver> {
  const receiver = startReceiver({ answer });
  receivers.push(receiver);
  return receiver;
}

const acceptBatch = (request: ReceivedRequest) => {
  const { events } = request.json() as { events: { payload: { n: number } }[] };
  return Response.json(
    { status: "accepted", eventIds: events.map(({ payload }) => `evt_${payload.n}`) },
    { status: 202 },
  );
};

const unavailable = (headers: Record<string, string> = {}) =>
  Response.json({ message: "The server is busy.", code: "busy" }, { status: 503, headers });

describe("one event", () => {
  const odd = '{ "n": 1.0, "big": 123456789012345678901234567890, "é": "\\ud83d", "a": 1, "a": 2 }';

  test("is sent byte for byte, and its id is printed", async () => {
    const { code, out, err } = await send([odd]);
    expect({ code, err }).toEqual({ code: 0, err: [] });
    expect(out).toEqual([expect.stringMatching(/^evt_\w{26}$/)]);
    expect(await payloadOf(out[0] ?? "")).toBe(odd);
  });

  test("from a file, with the white space of an editor around it", async () => {
    const file = join(folder, "event.json");
    writeFileSync(file, `\n  ${odd}\r\n`);
    const { code, out } = await send(["--file", file]);
    expect(code).toBe(0);
    expect(await payloadOf(out[0] ?? "")).toBe(odd);
  });

  test("with a type and an ordering key of its own", async () => {
    const { code, out } = await send(['{"type":"other"}', "--type", "order.paid", "--ordering-key", 'customer "42"']);
    expect(code).toBe(0);
    const { body } = await account.get(`/v1/events/${out[0]}`);
    expect(body).toMatchObject([{ eventType: "order.paid", orderingKey: 'customer "42"' }]);
  });

  test.each([
    ["--type", "", "--type must be 1 to 200 characters without control characters. Try: --type order.paid"],
    ["--type", "a\tb", "--type must be 1 to 200 characters without control characters. Try: --type order.paid"],
    ["--type", "postrider.x", '--type must not begin with "postrider.". Try: --type order.paid'],
    [
      "--ordering-key",
      "k".repeat(256),
      "--ordering-key must be 1 to 255 characters without control characters. Try: --ordering-key customer-42",
    ],
  ])("%s %p is refused before anybody is asked", async (flag, value, message) => {
    expect(await refusal(["{}", flag, value])).toEqual({ code: 2, out: [], err: [`postrider: ${message}`] });
  });

  test("--json prints the answer as it came", async () => {
    const answer = '{"status":"accepted",  "eventId":"evt_1"}';
    const server = await receivedBy(() => new Response(answer, { status: 202 }));
    expect(await send(["{}", "--json"], { url: server.url })).toMatchObject({ code: 0, out: [answer] });
    expect(server.requests.map(({ path, body }) => [path, body.toString()])).toEqual([
      ["/v1/ingest", '{"payload":{}}'],
    ]);
  });

  test.each([
    ["{nonsense", "The event is not valid JSON (unexpected character at byte 1)."],
    ['["a"]', "The event must be a JSON object."],
    ['"a"', "The event must be a JSON object."],
    ['{},"payload":{}', "The event is not valid JSON (unexpected character at byte 2)."],
    ['{},"a":1', "The event is not valid JSON (unexpected character at byte 2)."],
    ["{}}", "The event is not valid JSON (unexpected character at byte 2)."],
    ["", "The event is empty, but must be a JSON object."],
    ["\ufeff{}", "The event must be UTF-8 without a byte order mark."],
  ])("%p is refused before anybody is asked", async (text, message) => {
    expect(await refusal([text])).toEqual({
      code: 1,
      out: [],
      err: [`postrider: ${message} Try: postrider send '{"hello": "world"}'`],
    });
  });

  test("the server's own words are shown when it refuses", async () => {
    const { code, out, err } = await send([`{"a":"${"x".repeat(300_000)}"}`]);
    expect({ code, out, err }).toEqual({
      code: 1,
      out: [],
      err: ["postrider: The body must be at most 262144 bytes."],
    });
  });
});

describe("the key", () => {
  const signIn = () => ({ POSTRIDER_API_KEY: "", POSTRIDER_LOGIN: account.id, POSTRIDER_PASSWORD: account.password });

  test.each([
    ["of the account that signs in", () => signIn(), []],
    ["of the session in POSTRIDER_TOKEN", () => ({ POSTRIDER_API_KEY: "", POSTRIDER_TOKEN: account.jwt }), []],
    ["that is typed, without showing it", () => ({ POSTRIDER_API_KEY: "" }), ["API key: "]],
  ])("%s", async (_, env, asked) => {
    const { code, err, secretQuestions } = await send(["{}"], { env: env(), answers: [account.apiKey] });
    expect({ code, err, secretQuestions }).toEqual({ code: 0, err: [], secretQuestions: asked });
  });

  test("that is typed wrong is refused at once, and not shown", async () => {
    const server = await receivedBy(acceptBatch);
    const ended = send(["{}"], { url: server.url, env: { POSTRIDER_API_KEY: "" }, answers: ["svc_sk_…"] });
    await expect(ended).rejects.toThrow("What was typed is not an API key (svc_sk_…). Try: copy the whole key.");
    expect(server.requests).toEqual([]);
  });

  test("of an account after a rotation is the new one", async () => {
    const other = await app.account();
    const rotated = await other.post("/v1/tenants/api-keys/rotate", { grace_period_seconds: 600 });
    const wire = await startWire(app.url);
    const env = { POSTRIDER_LOGIN: other.id, POSTRIDER_PASSWORD: other.password, POSTRIDER_API_KEY: "" };
    expect(await send(["{}"], { url: wire.url, env })).toMatchObject({ code: 0 });
    await wire.whenSent(`Authorization: Bearer ${rotated.body.key}\r\n`);
    await wire.stop();
  });

  test("--login means the account's, also where the environment has a key", async () => {
    const other = await app.account();
    const env = { POSTRIDER_PASSWORD: other.password };
    const { out } = await send(["{}", "--login", other.id], { env });
    expect((await other.get(`/v1/events/${out[0]}`)).status).toBe(200);
  });

  test.each([
    [{}, "No API key to send with. Try: POSTRIDER_API_KEY="],
    [
      { POSTRIDER_API_KEY: "sk_live_1" },
      "POSTRIDER_API_KEY must be an API key (svc_sk_…). Try: POSTRIDER_API_KEY=svc_sk_",
    ],
    [{ POSTRIDER_API_KEY: "svc_sk_1" }, "Authorization must be `Bearer <API key>` with an active key"],
    [{ POSTRIDER_LOGIN: "t1", POSTRIDER_PASSWORD: "Wr0ng#password" }, "loginId or password is wrong. Try: check"],
  ] as [Record<string, string>, string][])("with %p it ends with 1", async (env, start) => {
    const { code, out, err } = await refusal(["{}"], env);
    expect({ code, out }).toEqual({ code: 1, out: [] });
    expect(err.join("\n")).toStartWith(`postrider: ${start}`);
    expect(err.join("\n")).not.toContain("Wr0ng#password");
  });
});

describe("a server that is away", () => {
  test("is asked again with the same idempotency key, and what it waits for is said once", async () => {
    const clock = createTravelClock();
    const server = await receivedBy(({ nth }) =>
      nth < 4 ? unavailable({ "Retry-After": "5" }) : Response.json({ eventId: "evt_1" }, { status: 202 }),
    );
    const { terminal, ended } = begin(["{}"], { url: server.url, clock });
    for (let nth = 1; nth < 4; nth += 1) {
      await server.waitFor(nth);
      await terminal.when(terminal.err, () => true);
      await until(
        () => server.requests.length,
        (requests) => {
          clock.travel(1_000);
          return requests > nth;
        },
      );
    }
    expect(await ended).toBe(0);
    expect(terminal.out).toEqual(["evt_1"]);
    expect(terminal.err).toEqual([
      `${server.url} answered 503 (The server is busy.). Retrying for 2 min.`,
      `${server.url} is available again.`,
    ]);
    const keys = server.requests.map(({ headers }) => headers.get("idempotency-key"));
    expect(keys).toEqual(Array(4).fill(keys[0]));
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("a request whose answer is lost is repeated, and its event accepted once", async () => {
    const wire = await startWire(app.url);
    const { total } = (await account.get("/v1/events?size=1")).body;
    const { ended } = begin(["{}"], { url: wire.url });
    await wire.whenSent("POST /v1/ingest");
    wire.cut();
    expect(await ended).toBe(0);
    expect((await account.get("/v1/events?size=1")).body.total).toBe(total + 1);
    await wire.stop();
  });

  test("for longer than --retry-for ends it with 1", async () => {
    const url = `http://127.0.0.1:${await closedPort()}`;
    expect(await send(["{}", "--retry-for", "10ms"], { url })).toMatchObject({
      code: 1,
      out: [],
      err: [
        `postrider: ${url} cannot be reached (connection refused); gave up after 10 ms. Try: later, or a longer --retry-for.`,
      ],
    });
  });

  test("without an answer to a request that it may have got, that is said", async () => {
    const wire = await startWire(app.url);
    const { terminal, ended } = begin(["{}", "--retry-for", "1ms"], { url: wire.url });
    await wire.whenSent("POST /v1/ingest");
    wire.break();
    expect(await ended).toBe(1);
    expect(terminal.err.at(-1)).toEndWith(" The event may have been accepted.");
    await wire.stop();
  });

  test("answered by a proxy in its place leaves open whether the event has arrived", async () => {
    const server = await receivedBy(() => new Response("upstream connect error", { status: 503 }));
    const { code, err } = await send(["{}", "--retry-for", "1ms"], { url: server.url });
    expect(code).toBe(1);
    expect(err.at(-1)).toEndWith(" The event may have been accepted.");
  });

  test("Ctrl+C ends the waiting with 130", async () => {
    const url = `http://127.0.0.1:${await closedPort()}`;
    const { terminal, ended } = begin(["{}"], { url });
    await terminal.when(terminal.err, () => true);
    terminal.interrupt();
    expect(await ended).toBe(130);
  });

  test.each([
    ["a rate limit that lasts longer than a minute", 429, "rate_limited", { "Retry-After": "61" }, ""],
    ["the quota", 429, "quota_exceeded", { "Retry-After": "1" }, ""],
    ["an account that may not", 403, "account_suspended", {}, ""],
    ["damaged data", 503, "storage_damaged", {}, ""],
    ["a defect", 500, "internal_error", {}, " The event may have been accepted."],
  ] as const)("but %s is no reason to wait", async (_, status, code, headers, doubt) => {
    const server = await receivedBy(() => Response.json({ message: "No.", code }, { status, headers }));
    expect(await send(["{}"], { url: server.url })).toMatchObject({ code: 1, err: [`postrider: No.${doubt}`] });
    expect(server.requests).toHaveLength(1);
  });
});

describe("lines", () => {
  const ndjson = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => `{"n":${from + i}}\n`).join("");

  test("each is an event, byte for byte; blank ones are passed over", async () => {
    const other = await app.account();
    const env = { POSTRIDER_API_KEY: other.apiKey };
    const input = pieces(
      '{"n": 1.0}\r\n',
      "\n  \t\n",
      '{"n"',
      ':2,"é":"',
      bytes("ü").slice(0, 1),
      bytes("ü").slice(1),
      '"}\n{"n":3}',
    );
    const { code, out, err } = await send([], { env, input });
    expect({ code, out, err }).toEqual({ code: 0, out: [], err: ["3 events accepted, 0 refused, 0 not sent."] });
    const { text } = await other.get("/v1/events");
    expect([...text.matchAll(/"originalPayload":(\{.*?\}),"attempts"/g)].map(([, payload]) => payload)).toEqual([
      '{"n":3}',
      '{"n":2,"é":"ü"}',
      '{"n": 1.0}',
    ]);
  });

  test("all get the type and the ordering key that were given", async () => {
    const { code, out } = await send(["--type", "order.paid", "--ordering-key", "k", "--json"], {
      input: pieces('{"n":1}\n{"n":2,"type":"other"}\n'),
    });
    expect(code).toBe(0);
    const events = await Promise.all(out.map((line) => account.get(`/v1/events/${JSON.parse(line).eventId}`)));
    expect(events.map(({ body: [record] }) => [record.eventType, record.orderingKey])).toEqual([
      ["order.paid", "k"],
      ["order.paid", "k"],
    ]);
  });

  test("more than a batch holds, in the order of the lines with --concurrency 1", async () => {
    const server = await receivedBy(acceptBatch);
    const input = pieces(ndjson(0, 1_700), ndjson(1_700, 2_500));
    const { code, err, progress } = await send(["--concurrency", "1"], { url: server.url, input });
    expect({ code, err }).toEqual({ code: 0, err: ["2,500 events accepted, 0 refused, 0 not sent."] });
    expect(server.requests.map(({ body }) => body.toString())).toEqual(
      [ndjson(0, 1000), ndjson(1000, 2000), ndjson(2000, 2500)].map(
        (part) =>
          `{"events":[${part
            .trim()
            .split("\n")
            .map((line) => `{"payload":${line}}`)
            .join()}]}`,
      ),
    );
    expect(progress[0]).toMatch(/^1,000 sent, [\d,]+ a second, 0 failed$/);
    expect(progress.at(-1)).toBe("");
  });

  test("a batch has at most 5 MiB", async () => {
    const server = await receivedBy((request) => {
      expect(request.body.length).toBeLessThanOrEqual(5 * 2 ** 20);
      return acceptBatch(request);
    });
    const line = (length: number) => `{"n":"${"x".repeat(length - 8)}"}\n`;
    // Three just fit: 11 bytes of the batch, 12 of each event and a comma between.
    const third = Math.floor((5 * 2 ** 20 - 13 - 3 * 13) / 3);
    const { code } = await send([], { url: server.url, input: pieces(line(third).repeat(7), line(5 * 2 ** 20 - 40)) });
    expect(code).toBe(0);
    expect(server.requests.map(({ json }) => (json() as { events: unknown[] }).events.length).sort()).toEqual([
      1, 1, 3, 3,
    ]);
  });

  test("those that are no event are named, and the others are sent", async () => {
    const input = pieces(
      '{"a":1}\nnonsense\n\n[2]\n{"b":2}\n',
      `{"c":"${"x".repeat(5 * 2 ** 20)}"}\n`,
      '{"d":4}\n{"e"',
    );
    const { code, err } = await send([], { input });
    expect(code).toBe(1);
    expect(err).toEqual([
      "Line 2 was refused: The event is not valid JSON (unexpected character at byte 1).",
      "Line 4 was refused: The event must be a JSON object.",
      "Line 6 was refused: The event exceeds 5242854 bytes, the most that one request can carry.",
      "Line 8 was refused: The event is not valid JSON (unexpected end at byte 4).",
      "3 events accepted, 4 refused, 0 not sent.",
    ]);
  });

  test("--json prints what became of each", async () => {
    const server = await receivedBy(acceptBatch);
    const { out } = await send(["--json"], { url: server.url, input: pieces('{"n":1}\nno\n{"n":2}\n') });
    expect(out.map((line) => JSON.parse(line))).toEqual([
      { line: 2, error: "The event is not valid JSON (unexpected character at byte 1)." },
      { line: 1, eventId: "evt_1" },
      { line: 3, eventId: "evt_2" },
    ]);
  });

  test("--strict ends with the first that is no event", async () => {
    const server = await receivedBy(acceptBatch);
    const { code, err } = await send(["--strict"], {
      url: server.url,
      input: pieces('{"n":1}\nno\n{"n":2}\n', '{"n":3}\n'),
    });
    expect(code).toBe(1);
    expect(err).toEqual([
      "Line 2 was refused: The event is not valid JSON (unexpected character at byte 1).",
      "postrider: Line 2 is not an event, and --strict stops at the first such line.",
      "1 event accepted, 1 refused, 1 not sent. Nothing after line 3 was read.",
    ]);
  });

  test("input that cannot be read on is told of, after what came before", async () => {
    const server = await receivedBy(acceptBatch);
    async function* breakingOff() {
      yield* pieces('{"n":1}\n{"n":');
      throw new Error("EIO: i/o error, read");
    }
    const { code, err } = await send([], { url: server.url, input: breakingOff() });
    expect(code).toBe(1);
    expect(err).toEqual([
      "postrider: Standard input cannot be read (EIO: i/o error, read). Try: postrider send < events.ndjson",
      "1 event accepted, 0 refused, 0 not sent. Nothing after line 1 was read.",
    ]);
  });

  test("the one that spoils its batch at the server is found, and the others are sent", async () => {
    const server = await receivedBy((request) => {
      if (!request.body.includes('"n":13}')) return acceptBatch(request);
      return Response.json({ message: "No 13.", code: "unlucky" }, { status: 400 });
    });
    const { code, err } = await send([], { url: server.url, input: pieces(ndjson(0, 40)) });
    expect({ code, err }).toEqual({
      code: 1,
      err: ["Line 14 was refused: No 13.", "39 events accepted, 1 refused, 0 not sent."],
    });
    const keys = server.requests.map(({ headers }) => headers.get("idempotency-key"));
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("--strict ends with the first that the server refuses", async () => {
    const server = await receivedBy((request) => {
      if (!request.body.includes('"n":2}')) return acceptBatch(request);
      return Response.json({ message: "No 2.", code: "unlucky" }, { status: 400 });
    });
    const refused = Promise.withResolvers<void>();
    async function* lines() {
      yield bytes(ndjson(0, 4));
      await refused.promise;
    }
    const { terminal, ended } = begin(["--strict"], { url: server.url, input: lines() });
    expect(await ended).toBe(1);
    refused.resolve();
    expect(terminal.err).toEqual([
      "Line 3 was refused: No 2.",
      "postrider: Line 3 was refused, and --strict stops at the first such line.",
      "2 events accepted, 1 refused, 1 not sent. Nothing after line 4 was read.",
    ]);
  });

  test("that are too many for a proxy on the way go in smaller batches", async () => {
    const server = await receivedBy((request) =>
      request.body.length > 1_000 ? new Response("<h1>413</h1>", { status: 413 }) : acceptBatch(request),
    );
    const input = pieces(ndjson(0, 100), `{"n":"${"x".repeat(1_000)}"}`);
    expect(await send([], { url: server.url, input })).toMatchObject({
      code: 1,
      err: [
        "Line 101 was refused: A proxy in front of the server does not accept requests of this size.",
        "100 events accepted, 1 refused, 0 not sent.",
      ],
    });
  });

  test("go out although more may come: tail -f", async () => {
    const other = await app.account();
    const more = Promise.withResolvers<void>();
    async function* slow() {
      yield bytes('{"n":1}\n{"n"');
      await more.promise;
      yield bytes(":2}\n");
    }
    const { ended, terminal } = begin([], { env: { POSTRIDER_API_KEY: other.apiKey }, input: slow() });
    await until(
      () => other.get("/v1/events"),
      ({ body }) => body.total === 1,
    );
    more.resolve();
    expect(await ended).toBe(0);
    expect(terminal.err).toEqual(["2 events accepted, 0 refused, 0 not sent."]);
  });

  test("stop at the end of the quota, and say how many were not sent", async () => {
    const other = await app.account();
    const env = { POSTRIDER_API_KEY: other.apiKey };
    const { code, err } = await send(["--concurrency", "1"], { env, input: pieces(ndjson(0, 10_600)) });
    expect(code).toBe(1);
    expect(err).toEqual([
      expect.stringMatching(/^postrider: All of the account's 10000 events for this month are used;/),
      "10,000 events accepted, 0 refused, 600 not sent.",
    ]);
  });

  test("that follow one which could not be sent are not read any more", async () => {
    const server = await receivedBy(() => Response.json({ message: "Suspended.", code: "no" }, { status: 403 }));
    async function* endless() {
      for (let n = 0; ; n += 1000) yield bytes(ndjson(n, n + 1000));
    }
    const { code, err } = await send([], { url: server.url, input: endless() });
    expect(code).toBe(1);
    expect(err[0]).toBe("postrider: Suspended.");
    expect(err[1]).toMatch(/^0 events accepted, 0 refused, [\d,]+ not sent\. Nothing after line [\d,]+ was read\.$/);
  });

  test("without an answer are counted apart, with --json too", async () => {
    const wire = await startWire(app.url);
    const { terminal, ended } = begin(["--json", "--retry-for", "1ms"], { url: wire.url, input: pieces(ndjson(0, 2)) });
    await wire.whenSent("POST /v1/ingest/batch");
    wire.break();
    expect(await ended).toBe(1);
    await wire.stop();
    expect(terminal.err.at(-1)).toBe("0 events accepted, 0 refused, 0 not sent, 2 possibly accepted.");
    const error = expect.stringContaining("gave up after 1 ms");
    expect(terminal.out.map((line) => JSON.parse(line))).toEqual([
      { line: 1, error, mayHaveArrived: true },
      { line: 2, error, mayHaveArrived: true },
    ]);
  });

  test.each([
    ["a key that is no longer active", 401, { message: "No.", code: "unauthenticated" }],
    ["a defect", 500, { message: "No.", code: "internal_error" }],
    ["an address that is not Postrider's", 404, null],
    ["a proxy's limit on size", 413, null],
    ["a rule", 400, { message: "No.", code: "invalid_request" }],
    ["a rate limit of more than a minute", 429, { message: "No.", code: "rate_limited" }],
  ])(
    "whose response is lost and whose repeat is refused (%s) are in doubt, and not sent in parts",
    async (_, status, body) => {
      const server = await receivedBy(({ nth }) =>
        nth % 2 === 1
          ? new Response(null, { status: 502 })
          : Response.json(body, { status, headers: { "Retry-After": "61" } }),
      );
      const lines = await send(["--json"], { url: server.url, input: pieces(ndjson(0, 2)) });
      expect(lines.code).toBe(1);
      expect(lines.err.at(-1)).toBe("0 events accepted, 0 refused, 0 not sent, 2 possibly accepted.");
      expect(lines.out.map((line) => JSON.parse(line))).toEqual([
        { line: 1, error: expect.any(String), mayHaveArrived: true },
        { line: 2, error: expect.any(String), mayHaveArrived: true },
      ]);
      const one = await send(["{}"], { url: server.url });
      expect(one.code).toBe(1);
      expect(one.err.at(-1)).toEndWith(" The event may have been accepted.");
      expect(server.requests).toHaveLength(4);
    },
  );

  test("Ctrl+C sends what was read, and ends with 130", async () => {
    const server = await receivedBy(acceptBatch);
    const read = Promise.withResolvers<void>();
    async function* slow() {
      yield bytes('{"n":1}\n');
      read.resolve();
      await new Promise(() => {});
    }
    const { terminal, ended } = begin([], { url: server.url, input: slow() });
    await read.promise;
    terminal.interrupt();
    expect(await ended).toBe(130);
    expect(terminal.err).toEqual([
      "postrider: Interrupted.",
      "1 event accepted, 0 refused, 0 not sent. Nothing after line 1 was read.",
    ]);
  });

  test.each([
    ["no bytes", [], pieces("")],
    ["blank lines alone", ["--strict"], pieces("\n \n")],
    ["no bytes with --json", ["--json"], pieces("")],
  ])("%s are no mistake, but are pointed out", async (_, words, input) => {
    const { code, out, err } = await send(words, { input });
    expect({ code, out, err }).toEqual({ code: 0, out: [], err: ["Nothing to send: standard input had no events."] });
  });
});

describe("what is typed wrong is one line", () => {
  test.each([
    [[], 2, 'Nothing to send. Try: postrider send \'{"hello": "world"}\', or lines:'],
    [["-"], 2, "Nothing to send."],
    [["{hello:", "world}"], 2, "An event must be a single argument; quote it. Try: postrider send '"],
    [["{}", "--file", "x"], 2, "--file and an event cannot be combined."],
    [["--file", "/nowhere.json"], 1, "/nowhere.json cannot be read. Try: "],
    [
      ["{}", "--retry-for", "soon"],
      2,
      '--retry-for must be a duration of at most 23h, not "soon". Try: --retry-for 2m',
    ],
    [["{}", "--retry-for", "24h"], 2, '--retry-for must be a duration of at most 23h, not "24h". Try: --retry-for 2m'],
    [["{}", "--concurrency", "17"], 2, "--concurrency must be 1 to 16. Try: --concurrency 4"],
    [
      ["{}", "--server", "relay"],
      2,
      '--server must be an http or https URL without a path, query or user name, not "relay". Try: --server https://relay.',
    ],
  ] as [string[], number, string][])("send %p", async (words, code, start) => {
    const result = await refusal(words);
    expect(result).toMatchObject({ code, out: [] });
    expect(result.err.join("\n")).toStartWith(`postrider: ${start}`);
  });
});
