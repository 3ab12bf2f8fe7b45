import { describe, expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import { acceptBatch, useSend } from "../support/send.ts";
import { startWire } from "../support/wire.ts";

const relay = useSend();
const { begin, send, receivedBy } = relay;

const bytes = (text: string) => new TextEncoder().encode(text);

async function* pieces(...texts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield typeof text === "string" ? bytes(text) : text;
}

describe("lines", () => {
  const ndjson = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => `{"n":${from + i}}\n`).join("");

  test("each is an event, byte for byte; blank ones are passed over", async () => {
    const other = await relay.app.account();
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
    const events = await Promise.all(out.map((line) => relay.account.get(`/v1/events/${JSON.parse(line).eventId}`)));
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

  test("one that is too large for the server is named by its line alone", async () => {
    const { err } = await send([], { input: pieces('{"a":1}\n', `{"b":"${"x".repeat(2 ** 18)}"}\n`, '{"c":3}\n') });
    expect(err).toEqual([
      "Line 2 was refused: The event must be at most 262144 bytes.",
      "2 events accepted, 1 refused, 0 not sent.",
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
    const other = await relay.app.account();
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
    const other = await relay.app.account();
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
    const wire = await startWire(relay.app.url);
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

  test("Ctrl+C before the first line says that none was read", async () => {
    const server = await receivedBy(acceptBatch);
    const asked = Promise.withResolvers<void>();
    async function* silent(): AsyncGenerator<Uint8Array> {
      asked.resolve();
      await new Promise(() => {});
    }
    const { terminal, ended } = begin([], { url: server.url, input: silent() });
    await asked.promise;
    terminal.interrupt();
    expect(await ended).toBe(130);
    expect(terminal.err.at(-1)).toBe("0 events accepted, 0 refused, 0 not sent. No line was read.");
  });

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
