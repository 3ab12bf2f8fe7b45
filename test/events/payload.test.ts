import { describe, expect, test } from "bun:test";
import { DomainError } from "../../src/domain/errors.ts";
import { sliceBatch, sliceEvent } from "../../src/events/payload.ts";
import { batch, decode, encode, outcome, parseOrNull, slice, slicePayload } from "./sliced.ts";

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof DomainError) return error.message;
    throw error;
  }
  throw new Error("nothing was thrown");
}
describe("sliceEvent returns the very bytes", () => {
  test.each([
    ["{}"],
    ['{"amount":12345678901234567890123}'],
    ['{"ratio":1.0,"tiny":1E-7,"minus":-0}'],
    ['{ "b" : 1 ,\r\n\t"a" : [ ] }'],
    ['{"a":1,"a":2,"__proto__":{"admin":true},"constructor":null}'],
    ['{"text":"\\u0041\\/\\n\\ud800 é 漢 🦉"}'],
    ['{"payload":{"payload":[]}}'],
    ['{"quoted":"}\\"]{[","":""}'],
  ])("of %s", (payload) => {
    expect(slice(`{"payload":${payload}}`)).toBe(payload);
    expect(slice(` {"before":[{"payload":1}] , "payload" : ${payload} , "after":null}\n`)).toBe(payload);
    expect(batch(`{"x":0,"events":[{"payload":${payload}}, {"a":[],"payload":${payload} }\t] }`)).toEqual([
      payload,
      payload,
    ]);
  });

  test("as a view on the body's own memory", () => {
    const body = encode('  {"payload":{"a":1}}');
    const payload = slicePayload(body);
    expect(payload.buffer).toBe(body.buffer);
    expect(payload.byteOffset).toBe(13);
  });

  test("of a body that is itself a view in the middle of other bytes", () => {
    const surroundings = encode('{"payload":{"a":1}}}}}}');
    expect(decode(slicePayload(surroundings.subarray(0, 19)))).toBe('{"a":1}');
    expect(outcome(() => slicePayload(surroundings.subarray(0, 18)))).toBe("invalid_json");
  });

  test("under a key that is written with escapes", () => {
    for (const key of [
      "p\\u0061yload",
      "\\u0070\\u0061\\u0079\\u006c\\u006f\\u0061\\u0064",
      "payloa\\u0064",
      "p\\u0061ylo\\u0061d",
    ]) {
      expect(slice(`{"${key}":{"a":1}}`)).toBe('{"a":1}');
      expect(slice(`{"payload":{},"${key}":{}}`)).toBe("payload_duplicate");
      expect(slice(`{"${key}":{},"payload":{}}`)).toBe("payload_duplicate");
    }
    expect(batch('{"\\u0065vents":[{"payload":{"a":1}}]}')).toEqual(['{"a":1}']);
    expect(batch('{"\\u0065vents":[{"payload":{}}],"events":[]}')).toBe("events_duplicate");
  });

  test.each([
    "Payload",
    "payloa",
    "payload2",
    " payload",
    "payload\\u0000",
    "p\\u0041yload",
    "\\\\u0070ayload",
    "p\\\\u0061yload",
    "раyload",
    "p\\nyload",
    "",
  ])("and not that of the other key %p", (key) => {
    expect(slice(`{"${key}":1,"payload":{"a":1}}`)).toBe('{"a":1}');
    expect(slice(`{"${key}":{}}`)).toBe("payload_required");
  });
});

describe("a body is refused", () => {
  test.each([
    ["", "invalid_json", "The body is empty, but must be a JSON object"],
    [" \n", "invalid_json", "The body is empty, but must be a JSON object"],
    ["[]", "body_not_object", "The body must be a JSON object"],
    ["null", "body_not_object", "The body must be a JSON object"],
    ['"payload"', "body_not_object", "The body must be a JSON object"],
    ["[}", "invalid_json", "The body is not valid JSON (unexpected character at byte 1)"],
    ["payload=1", "invalid_json", "The body is not valid JSON (unexpected character at byte 0)"],
    ["{}", "payload_required", "payload is required"],
    ['{"a":{"payload":{}}}', "payload_required", "payload is required"],
    ['{"payload":[]}', "payload_not_object", "payload must be a JSON object"],
    ['{"payload":null}', "payload_not_object", "payload must be a JSON object"],
    ['{"payload":"{}"}', "payload_not_object", "payload must be a JSON object"],
    ['{"payload":{},"payload":{}}', "payload_duplicate", "payload appears twice"],
    ['{"payload":{},"payload":1}', "payload_duplicate", "payload appears twice"],
    ['{"payload":hello}', "invalid_json", "The body is not valid JSON (unexpected character at byte 11)"],
    ['{"payload":{}', "invalid_json", "The body is not valid JSON (unexpected end at byte 13)"],
    ['{"payload":{"a', "invalid_json", "The body is not valid JSON (unexpected end at byte 14)"],
    ['{"payload":{"a":tr', "invalid_json", "The body is not valid JSON (unexpected end at byte 18)"],
    ['{"payload":{}}}', "invalid_json", "The body is not valid JSON (unexpected character at byte 14)"],
    ['{"payload":{}} {}', "invalid_json", "The body is not valid JSON (unexpected character at byte 15)"],
    ['{"payload":{"a":"\t"}}', "invalid_json", "The body is not valid JSON (unescaped control character at byte 17)"],
    ['{"payload":{"a":"\\x"}}', "invalid_json", "The body is not valid JSON (invalid escape at byte 17)"],
    ["\ufeff{}", "invalid_utf8", "The body must be UTF-8 without a byte order mark"],
  ])("when it is %j: %s", (body, code, message) => {
    expect(slice(body)).toBe(code);
    expect(messageOf(() => slicePayload(encode(body)))).toBe(`${message}.`);
  });

  test("when it is UTF-16", () => {
    expect(slice(Buffer.from('{"payload":{}}', "utf16le"))).toBe("invalid_json");
    expect(slice(Buffer.from('\ufeff{"payload":{}}', "utf16le"))).toBe("invalid_json");
  });

  test("when a NUL stands where the end could be", () => {
    for (const body of ['{"payload":{}}\0', '\0{"payload":{}}', '{"payload":{\0}}', '{"payload":{"a\0":1}}']) {
      expect(slice(body)).toBe("invalid_json");
    }
  });

  test("wherever it is cut off", () => {
    const whole = '{"a":[1.5e+3,true,{"k":"\\u00e9é"}],"payload":{"n":null,"f":false}}';
    const bytes = encode(whole);
    expect(slice(bytes)).toBe('{"n":null,"f":false}');
    for (let length = 0; length < bytes.length; length++) {
      expect(["invalid_json", "invalid_utf8"]).toContain(slice(bytes.subarray(0, length)));
    }
  });
});

describe("a batch is refused", () => {
  test.each([
    ["{}", "events_required", "events is required"],
    ['{"payload":{}}', "events_required", "events is required"],
    ['{"events":{}}', "events_not_array", "events must be a JSON array"],
    ['{"events":null}', "events_not_array", "events must be a JSON array"],
    ['{"events":[ ]}', "events_empty", "events must not be empty"],
    ['{"events":[{"payload":{}}],"events":[{"payload":{}}]}', "events_duplicate", "events appears twice"],
    ['{"events":[{"payload":{}},1]}', "event_not_object", "events[1] must be a JSON object"],
    ['{"events":[[{"payload":{}}]]}', "event_not_object", "events[0] must be a JSON object"],
    ['{"events":[{"payload":{}},{}]}', "payload_required", "events[1].payload is required"],
    ['{"events":[{"payload":[]}]}', "payload_not_object", "events[0].payload must be a JSON object"],
    ['{"events":[{"payload":{},"payload":{}}]}', "payload_duplicate", "events[0].payload appears twice"],
    ['{"events":[{"payload":{}},]}', "invalid_json", "The body is not valid JSON (unexpected character at byte 26)"],
    ['{"events":[{"payload":{}}', "invalid_json", "The body is not valid JSON (unexpected end at byte 25)"],
    ['[{"payload":{}}]', "body_not_object", "The body must be a JSON object"],
  ])("when it is %s: %s", (body, code, message) => {
    expect(batch(body)).toBe(code);
    expect(messageOf(() => sliceBatch(encode(body)))).toBe(`${message}.`);
  });

  test("when it holds more events than allowed, and not when it holds as many", () => {
    const events = (count: number) => `{"events":[${Array.from({ length: count }, () => '{"payload":{}}').join()}]}`;
    expect(batch(events(1000))).toHaveLength(1000);
    expect(batch(events(1001))).toBe("too_many_events");
    expect(batch(events(2), 2)).toHaveLength(2);
    expect(messageOf(() => sliceBatch(encode(events(3)), 2))).toBe("events must have at most 2 entries.");
  });
});

describe("nesting", () => {
  const nested = (levels: number, open = '{"a":', inner = "{}", close = "}") =>
    open.repeat(levels - 1) + inner + close.repeat(levels - 1);
  /** Payloads of so many levels; the body around them is one more. */
  const payloads = (levels: number) => [
    nested(levels),
    `{"a":${nested(levels - 1, "[", "[]", "]")}}`,
    `{"a":${nested(levels - 1, "[0,", '[""]', "]")},"b":1}`,
  ];

  test("may be 64 levels deep, the body's own object included", () => {
    for (const payload of payloads(63)) {
      expect(slice(`{"payload":${payload}}`)).toBe(payload);
      expect(batch(`{"events":[{"payload":${payload}}]}`)).toEqual([payload]);
      expect(slice(`{"other":${payload},"payload":{}}`)).toBe("{}");
    }
  });

  test("may not be 65 levels deep, wherever in the body", () => {
    for (const payload of payloads(64)) {
      expect(slice(`{"payload":${payload}}`)).toBe("nesting_too_deep");
      expect(slice(`{"payload":{},"other":${payload}}`)).toBe("nesting_too_deep");
      expect(batch(`{"events":[{"payload":${payload}}]}`)).toBe("nesting_too_deep");
      expect(batch(`{"events":[{"payload":{}}],"other":${payload}}`)).toBe("nesting_too_deep");
    }
    expect(messageOf(() => slicePayload(encode(`{"payload":${nested(64)}}`)))).toBe(
      `The body must not be nested deeper than 64 levels (at byte ${11 + 63 * 5}).`,
    );
  });

  test("of a hundred thousand levels is refused like any other, and the next body is read as ever", () => {
    for (const open of ["[", '{"a":', '[{"a":']) {
      expect(slice(open.repeat(100_000))).toBe("nesting_too_deep");
      expect(slice(`{"payload":${open.repeat(100_000)}`)).toBe("nesting_too_deep");
      expect(batch(`{"events":${open.repeat(100_000)}`)).toBeOneOf(["nesting_too_deep", "invalid_json"]);
      expect(slice('{"payload":{"a":[{}]}}')).toBe('{"a":[{}]}');
    }
  });

  test("counts what is open, not what there is", () => {
    const wide = `{"a":[${"[{}],".repeat(1000)}0]}`;
    expect(slice(`{"payload":${wide}}`)).toBe(wide);
  });
});

describe("strings are UTF-8 (RFC 3629)", () => {
  const inString = (...bytes: number[]) => {
    const body = new Uint8Array([...encode('{"payload":{"a":"'), ...bytes, ...encode('"}}')]);
    const start = 17;
    return { body, start };
  };
  const decodes = (bytes: number[]) => outcomeOf(() => decode(new Uint8Array(bytes)));
  const outcomeOf = (run: () => unknown) => {
    try {
      run();
      return true;
    } catch {
      return false;
    }
  };

  test.each([
    ["U+007F", [0x7f], true],
    ["U+0080", [0xc2, 0x80], true],
    ["U+07FF", [0xdf, 0xbf], true],
    ["U+0800", [0xe0, 0xa0, 0x80], true],
    ["U+D7FF", [0xed, 0x9f, 0xbf], true],
    ["U+E000", [0xee, 0x80, 0x80], true],
    ["U+FEFF inside a string", [0xef, 0xbb, 0xbf], true],
    ["U+FFFF", [0xef, 0xbf, 0xbf], true],
    ["U+10000", [0xf0, 0x90, 0x80, 0x80], true],
    ["U+10FFFF", [0xf4, 0x8f, 0xbf, 0xbf], true],
    ["an overlong slash in two bytes", [0xc0, 0xaf], false],
    ["an overlong U+007F", [0xc1, 0xbf], false],
    ["an overlong U+07FF", [0xe0, 0x9f, 0xbf], false],
    ["an overlong U+FFFF", [0xf0, 0x8f, 0xbf, 0xbf], false],
    ["the surrogate U+D800", [0xed, 0xa0, 0x80], false],
    ["the surrogate U+DFFF", [0xed, 0xbf, 0xbf], false],
    ["U+110000", [0xf4, 0x90, 0x80, 0x80], false],
    ["five bytes", [0xf8, 0x88, 0x80, 0x80, 0x80], false],
    ["a tail without a head", [0x80], false],
    ["a head without a tail", [0xc3], false],
    ["a head before ASCII", [0xe2, 0x82, 0x41], false],
    ["FF", [0xff], false],
  ])("%s", (_, bytes, valid) => {
    const { body, start } = inString(...bytes);
    expect(slice(body)).toBe(valid ? `{"a":"${decode(new Uint8Array(bytes))}"}` : "invalid_utf8");
    if (!valid) expect(messageOf(() => slicePayload(body))).toBe(`The body is not valid UTF-8 (at byte ${start}).`);
  });

  test("in agreement with TextDecoder on every two bytes and on the edges of three and four", () => {
    const edges = [0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xed, 0xf4, 0xff];
    const heads = Array.from({ length: 128 }, (_, at) => 0x80 + at);
    const cases: number[][] = [];
    for (const head of heads) {
      for (const second of [0x41, 0x7f, ...heads]) cases.push([head, second]);
      for (const second of edges) {
        for (const third of edges) {
          cases.push([head, second, third]);
          if (head >= 0xef) for (const fourth of edges) cases.push([head, second, third, fourth]);
        }
      }
    }
    const disagreements = cases.filter(
      (bytes) => (slice(inString(...bytes).body) !== "invalid_utf8") !== decodes(bytes),
    );
    expect(cases.length).toBeGreaterThan(60_000);
    expect(disagreements).toEqual([]);
  });

  test("and outside strings there is nothing but ASCII", () => {
    for (const space of ["\u00a0", "\u2028", "\u3000", "\ufeff", "\f", "\v"]) {
      expect(slice(`{${space}"payload":{}}`)).toBe("invalid_json");
    }
  });
});

describe("numbers, literals and separators are strict (RFC 8259)", () => {
  test.each([
    "0",
    "-0",
    "0.0",
    "10",
    "-1.5e10",
    "1E+2",
    "1e-2",
    "123456789012345678901234567890.1e400",
    "true",
    "false",
    "null",
    '""',
    "[ ]",
    "{ }",
    "[0,1]",
  ])("%s is a value", (value) => {
    expect(slice(`{"x":${value},"payload":{"a":${value}}}`)).toBe(`{"a":${value}}`);
  });

  test.each([
    "01",
    "-",
    "-01",
    "+1",
    ".5",
    "1.",
    "1.e2",
    "1e",
    "1e+",
    "0x10",
    "1_000",
    "NaN",
    "Infinity",
    "-Infinity",
    "True",
    "nul",
    "nulll",
    "undefined",
    "'a'",
    '"a',
    '"\\u12"',
    '"\\u123g"',
    '"\\U0041"',
    '"\n"',
    "[1,]",
    "[,1]",
    "[1 2]",
    '{"a":1,}',
    '{"a" 1}',
    "{a:1}",
    "{1:1}",
    '{"a":}',
    '{"a"}',
    "[}",
    "{]",
    "/**/1",
    "1 // one",
    "",
  ])("%j is no value", (value) => {
    expect(slice(`{"payload":{"a":${value}}}`)).toBe("invalid_json");
    expect(slice(`{"payload":{},"x":${value}}`)).toBe("invalid_json");
    expect(outcome(() => JSON.stringify(parseOrNull(`{"a":${value}}`)))).toBe("null");
  });
});

/** JSON texts as tenants may write them: white space, escapes, any spelling of a number, duplicate and strange keys. */
describe("the type of an event", () => {
  const typeOf = (body: string) => outcome(() => sliceEvent(encode(body)).type);
  const long = "x".repeat(200);

  test.each<[what: string, body: string, type: string | null]>([
    ["is the body's own", '{"event_type":"order.paid","payload":{"event_type":"other","type":"third"}}', "order.paid"],
    ["may come after the payload", '{"payload":{"type":"other"},"event_type":"order.paid"}', "order.paid"],
    ["else the payload's event_type", '{"payload":{"type":"other","event_type":"order.paid"}}', "order.paid"],
    ["else the payload's type", '{"payload":{"type":"order.paid","data":{"type":"deep"}}}', "order.paid"],
    ["is the payload's where the body has null", '{"event_type":null,"payload":{"type":"order.paid"}}', "order.paid"],
    ["is none", '{"payload":{"a":1}}', null],
    ["is none of a payload in the payload", '{"payload":{"a":{"type":"deep"},"b":[{"event_type":"deep"}]}}', null],
    ["of two in the payload is the last, as parsers have it", '{"payload":{"type":"a","type":"b"}}', "b"],
    [
      "is read with its escapes",
      '{"payload":{"\\u0074ype":"order\\u002epaid \\"x\\" \\u00e9é🦉"}}',
      'order.paid "x" éé🦉',
    ],
    ["may have 200 characters", `{"payload":{"type":"${long}"}}`, long],
    ["of more in a payload is none", `{"payload":{"type":"${long}x"}}`, null],
    ["of a payload whose event_type is no string is its type", '{"payload":{"event_type":7,"type":"a"}}', "a"],
    ["is no empty string in a payload", '{"payload":{"type":""}}', null],
    ["is nothing with a NUL", '{"payload":{"type":"a\\u0000"}}', null],
    ["is nothing with half a surrogate pair", '{"payload":{"type":"a\\ud800"}}', null],
    ["is nothing that only the server says", '{"payload":{"type":"postrider.webhook.failing"}}', null],
  ])("%s", (_, body, type) => {
    expect(typeOf(body)).toBe(type);
    expect(outcome(() => sliceBatch(encode(`{"events":[${body}]}`))[0]?.type ?? null)).toBe(type);
  });

  test.each<[body: string, message: string]>([
    [
      '{"event_type":7,"payload":{}}',
      "event_type must be a string of 1 to 200 characters without control characters, or null.",
    ],
    [
      '{"event_type":"","payload":{}}',
      "event_type must be a string of 1 to 200 characters without control characters, or null.",
    ],
    [
      `{"event_type":"${long}x","payload":{}}`,
      "event_type must be a string of 1 to 200 characters without control characters, or null.",
    ],
    [
      '{"event_type":"a\\n","payload":{}}',
      "event_type must be a string of 1 to 200 characters without control characters, or null.",
    ],
    ['{"event_type":"postrider.x","payload":{}}', 'event_type must not begin with "postrider.".'],
    ['{"event_type":"a","payload":{},"event_type":"a"}', "event_type appears twice."],
  ])("is refused beside the payload of %s", (body, message) => {
    expect(messageOf(() => sliceEvent(encode(body)))).toBe(message);
    expect(messageOf(() => sliceBatch(encode(`{"events":[{"payload":{}},${body}]}`)))).toBe(`events[1].${message}`);
  });
});

describe("the ordering key of an event", () => {
  const keyOf = (body: string) => outcome(() => sliceEvent(encode(body)).orderingKey);
  const long = "k".repeat(255);

  test.each<[what: string, body: string, key: string | null]>([
    ["is the body's own", '{"ordering_key":"customer 7","payload":{}}', "customer 7"],
    ["is none", '{"payload":{"ordering_key":"customer 7"}}', null],
    ["is none when it is null", '{"ordering_key":null,"payload":{}}', null],
    ["may have 255 characters", `{"ordering_key":"${long}","payload":{}}`, long],
  ])("%s", (_, body, key) => {
    expect(keyOf(body)).toBe(key);
  });

  test.each(['""', "7", "{}", `"${long}k"`, '"a\\u0000"'])("is refused as %s", (value) => {
    expect(keyOf(`{"ordering_key":${value},"payload":{}}`)).toBe("invalid_ordering_key");
    expect(keyOf(`{"ordering_key":"a","ordering_key":"a","payload":{}}`)).toBe("ordering_key_duplicate");
  });
});
