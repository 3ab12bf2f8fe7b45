import { describe, expect, test } from "bun:test";
import { codeOfAttempt } from "../../src/domain/failure.ts";

describe("the code of an attempt", () => {
  test.each([
    ["is the one that was stored", { error: "x", errorCode: "timeout", statusCode: null }, "timeout"],
    [
      "from before there were codes is told by its answer",
      { error: "x", errorCode: null, statusCode: 503 },
      "http_status",
    ],
    [
      "from before there were codes is not known without an answer",
      { error: "x", errorCode: null, statusCode: null },
      null,
    ],
    ["is none after a success", { error: null, errorCode: null, statusCode: 204 }, null],
  ] as const)("%s", (_, attempt, code) => {
    expect(codeOfAttempt(attempt)).toBe(code);
  });
});
