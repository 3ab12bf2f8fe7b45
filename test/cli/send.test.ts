import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closedPort, createTravelClock, until } from "../support/api-server.ts";
import { acceptBatch, useSend } from "../support/send.ts";
import { startWire } from "../support/wire.ts";

const folder = mkdtempSync(join(tmpdir(), "postrider-send-"));
const relay = useSend();
const { begin, send, refusal, receivedBy } = relay;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The stored text of an event's payload. */
async function payloadOf(eventId: string): Promise<string> {
  const { text } = await relay.account.get(`/v1/events/${eventId}`);
  return /"originalPayload":(.*),"attempts"/.exec(text)?.[1] ?? "";
}

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
    const { body } = await relay.account.get(`/v1/events/${out[0]}`);
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
    [`{"a" ${"x".repeat(300)}`, "The event is not valid JSON (unexpected character at byte 5)."],
    ["\ufeff{}", "The event must be UTF-8 without a byte order mark."],
  ])("%p is refused before anybody is asked", async (text, message) => {
    expect(await refusal([text])).toEqual({
      code: 1,
      out: [],
      err: [`postrider: ${message} Try: postrider send '{"hello": "world"}'`],
    });
  });

  test("that is the name of a file is sent with --file", async () => {
    const file = join(folder, "an event.json");
    writeFileSync(file, "{}");
    const { err } = await refusal([file]);
    expect(err.join("\n")).toEndWith(` Try: postrider send --file '${file}'`);
  });

  test.each([
    ["two events", '{"a":1}\n{"a":2}\n', " Try: postrider send < FILE, if each of its lines is an event"],
    ["two lines behind a byte order mark", "\ufeff{}\n{}\n", "must be UTF-8 without a byte order mark."],
    ["bytes that are not UTF-8", Buffer.from('{"a":"\xe9"}\n{}', "latin1"), "is not valid UTF-8 (at byte 6)."],
    ["too many levels", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`, "deeper than 64 levels (at byte 67)."],
    ["one broken event on several lines", "{\n  nonsense\n}\n", "unexpected character at byte 4)."],
    ["nothing", "", "The event is empty, but must be a JSON object."],
  ])("a file of %s is refused, and to be sent as lines only if that may help", async (_, content, end) => {
    const file = join(folder, "broken.json");
    writeFileSync(file, content);
    const { code, err } = await refusal(["--file", file]);
    expect(code).toBe(1);
    expect(err.join("\n")).toEndWith(end.replace("FILE", file));
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
  const signIn = () => ({
    POSTRIDER_API_KEY: "",
    POSTRIDER_LOGIN: relay.account.id,
    POSTRIDER_PASSWORD: relay.account.password,
  });

  test.each([
    ["of the account that signs in", () => signIn(), []],
    ["of the session in POSTRIDER_TOKEN", () => ({ POSTRIDER_API_KEY: "", POSTRIDER_TOKEN: relay.account.jwt }), []],
    ["that is typed, without showing it", () => ({ POSTRIDER_API_KEY: "" }), ["API key: "]],
  ])("%s", async (_, env, asked) => {
    const { code, err, secretQuestions } = await send(["{}"], { env: env(), answers: [relay.account.apiKey] });
    expect({ code, err, secretQuestions }).toEqual({ code: 0, err: [], secretQuestions: asked });
  });

  test("that is typed wrong is refused at once, and not shown", async () => {
    const server = await receivedBy(acceptBatch);
    const ended = send(["{}"], { url: server.url, env: { POSTRIDER_API_KEY: "" }, answers: ["svc_sk_…"] });
    await expect(ended).rejects.toThrow("What was typed is not an API key (svc_sk_…). Try: copy the whole key.");
    expect(server.requests).toEqual([]);
  });

  test("of an account after a rotation is the new one", async () => {
    const other = await relay.app.account();
    const rotated = await other.post("/v1/tenants/api-keys/rotate", { grace_period_seconds: 600 });
    const wire = await startWire(relay.app.url);
    const env = { POSTRIDER_LOGIN: other.id, POSTRIDER_PASSWORD: other.password, POSTRIDER_API_KEY: "" };
    expect(await send(["{}"], { url: wire.url, env })).toMatchObject({ code: 0 });
    await wire.whenSent(`Authorization: Bearer ${rotated.body.key}\r\n`);
    await wire.stop();
  });

  test("--login means the account's, also where the environment has a key", async () => {
    const other = await relay.app.account();
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
    const wire = await startWire(relay.app.url);
    const { total } = (await relay.account.get("/v1/events?size=1")).body;
    const { ended } = begin(["{}"], { url: wire.url });
    await wire.whenSent("POST /v1/ingest");
    wire.cut();
    expect(await ended).toBe(0);
    expect((await relay.account.get("/v1/events?size=1")).body.total).toBe(total + 1);
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
    const wire = await startWire(relay.app.url);
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
