import { describe, expect, test } from "bun:test";
import { judge } from "../../../src/delivery/verdict.ts";
import { outcomeOf, withoutUrl } from "../../../web/format/outcome.ts";

const url = "https://shop.example/hook";
const stateOf = { acknowledged: "DELIVERED", retryable: "PENDING", permanent: "FAILED" } as const;

describe("what an answer means", () => {
  test("is what the server makes of it, for every status", () => {
    for (let status = 200; status < 600; status += 1) {
      const body = { ended: true, received: () => new Uint8Array(), done: Promise.resolve() };
      const { kind } = judge(
        { kind: "responded", status, retryAfter: undefined, head: null, durationMs: 1, body },
        url,
      );
      expect(`${status} ${outcomeOf(status).state}`).toBe(`${status} ${stateOf[kind]}`);
    }
    const { kind } = judge({ kind: "no-response", cause: "timeout", durationMs: 10_000 }, url);
    expect(outcomeOf(null).state).toBe(stateOf[kind]);
  });

  test.each([
    [`HTTP 503 from ${url}`, "HTTP 503 from the webhook"],
    [`The address of ${url} is not public`, "The address of the webhook is not public"],
    ["No webhook was registered when the event arrived", "No webhook was registered when the event arrived"],
  ])("is said without the URL where that is plain: %s", (reason, short) => {
    expect(withoutUrl(reason, url)).toBe(short);
  });
});
