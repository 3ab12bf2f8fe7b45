import { describe, expect, test } from "bun:test";
import { goesOn, kindOf, lineOf, movesOf } from "../../src/domain/failure-groups.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("the line of an answer", () => {
  test.each([
    ["", ""],
    ["not found", "not found"],
    ["\r\n \n  first \t that says anything \nsecond", "first that says anything"],
    ["Order 1042 not found", "Order # not found"],
    ["order 1,042.50 of 2026-11-23T08:41:00Z", "order # of #-#-#T#Z"],
    ["id 5F3C9A10-1b2c-4d5e-8f90-a1b2c3d4e5f6 is taken", "id # is taken"],
    ["evt_01jc8x2m4e7n9q3s5v7y9a1c3e: no such user", "#: no such user"],
    ["ORA-00942: table or view does not exist", "ORA-#: table or view does not exist"],
    ['{"error":"quota","id":17}', '{"error":"quota","id":#}'],
    ['{\n  "error": "database down",\n  "id": 17\n}\n', '{ "error": "database down", "id": # }'],
    ['[\r\n\t"no such user"\r\n]', '[ "no such user" ]'],
    ["<html>\r\n<head><title>502 Bad Gateway</title></head>", "<html> <head><title># Bad Gateway</title></head>"],
    ["HTTP/1.1 said", "HTTP/# said"],
    ["no such route: POST /v2/hooks of row17", "no such route: POST /v2/hooks of row#"],
    ["nul\u0000 and \u001b[31mred", "nul and [#mred"],
    [`${"ä".repeat(199)}😀`, `${"ä".repeat(199)}\ufffd`],
  ])("of %j is %j", (answer, line) => {
    expect(lineOf(bytes(answer))).toBe(line);
  });

  test("of an answer that is no text, or long, is short and well-formed", () => {
    for (const answer of [
      Uint8Array.from({ length: 4096 }, (_, i) => i),
      bytes("a1".repeat(2000)),
      bytes("1 ".repeat(2000)),
    ]) {
      const line = lineOf(answer);
      expect(line.length).toBeLessThanOrEqual(200);
      expect(line.isWellFormed()).toBe(true);
    }
    expect(lineOf(null)).toBe("");
  });
});

test("a failure without an answer has no line, and a success is no failure", () => {
  const answer = bytes("busy 7");
  expect(kindOf({ errorCode: "http_status", statusCode: 503 }, 5, answer)).toEqual({
    ...{ webhookKey: 5, code: "http_status", status: 503, line: "busy #" },
  });
  expect(kindOf({ errorCode: "timeout", statusCode: null }, 5, answer)).toEqual({
    ...{ webhookKey: 5, code: "timeout", status: null, line: "" },
  });
  expect(kindOf({ errorCode: null, statusCode: null }, 5, answer)).toBeNull();
});

describe("groups count", () => {
  const one = { failureKey: 7 };
  test.each([
    [
      "nothing of a delivery that succeeds at once",
      { state: "PENDING", failureKey: null },
      { state: "DELIVERED", failureKey: null },
      [],
    ],
    ["a first failure, which waits", { state: "PENDING", failureKey: null }, { state: "PENDING", ...one }, [[7, 1, 0]]],
    [
      "the end of its run",
      { state: "PENDING", ...one },
      { state: "FAILED", ...one },
      [
        [7, -1, 0],
        [7, 0, 1],
      ],
    ],
    [
      "another failure elsewhere",
      { state: "PENDING", ...one },
      { state: "FAILED", failureKey: 8 },
      [
        [7, -1, 0],
        [8, 0, 1],
      ],
    ],
    [
      "a success after it no more",
      { state: "PENDING", ...one },
      { state: "DELIVERED", failureKey: null },
      [[7, -1, 0]],
    ],
    [
      "a replay as waiting",
      { state: "FAILED", ...one },
      { state: "PENDING", ...one },
      [
        [7, 0, -1],
        [7, 1, 0],
      ],
    ],
    ["a record that is new", null, { state: "FAILED", ...one }, [[7, 0, 1]]],
    ["a record that is removed no more", { state: "FAILED", ...one }, null, [[7, 0, -1]]],
  ] as const)("%s", (_, before, after, moves) => {
    expect(movesOf(before, after).map(({ failureKey, waiting, failed }) => [failureKey, waiting, failed])).toEqual(
      moves.map((move) => [...move]),
    );
  });
});

test.each([
  ["something waits", 1, [7], [[7, 9]], true],
  ["nothing was delivered since", 0, [7], [[7, 4]], true],
  ["nothing was ever delivered", 0, [7], [], true],
  ["one of its types was delivered since", 0, [7, 8], [[8, 6]], false],
  [
    "only other types were delivered since",
    0,
    [7, 8],
    [
      [9, 6],
      [null, 6],
    ],
    true,
  ],
  ["its events have no type, and such a one was delivered", 0, [null], [[null, 6]], false],
  ["the webhook was removed", 0, [7], null, false],
] as const)("whether failures of moment 5 go on when %s", (_, waiting, typeHashes, delivered, isGoingOn) => {
  const signs = { code: "timeout", waiting, lastFailedAt: 5, typeHashes } as const;
  expect(goesOn(signs, delivered && new Map(delivered))).toBe(isGoingOn);
});

test("what failed as the server was restored goes on only while it waits for a replay", () => {
  const signs = { code: "server_restored", lastFailedAt: 5, typeHashes: [7] } as const;
  expect(goesOn({ ...signs, waiting: 0 }, new Map())).toBe(false);
  expect(goesOn({ ...signs, waiting: 1 }, new Map())).toBe(true);
});
