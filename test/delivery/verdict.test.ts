import { describe, expect, test } from "bun:test";
import type { Outcome } from "../../src/delivery/network/transport.ts";
import { judge } from "../../src/delivery/verdict.ts";
import type { NoResponseCause } from "../../src/domain/failure.ts";

const url = "https://shop.example/hook";
const body = { ended: true, received: () => new Uint8Array(), done: Promise.resolve() };
const responded = (status: number, retryAfter?: string): Outcome => ({
  kind: "responded",
  status,
  retryAfter,
  head: null,
  durationMs: 1,
  body,
});
const silent = (cause: NoResponseCause, detail?: string): Outcome => ({
  kind: "no-response",
  cause,
  durationMs: 1,
  ...(detail !== undefined && { detail }),
});

describe('judge (specification, "Acknowledgement and retry rules")', () => {
  test.each([
    [200, "acknowledged"],
    [204, "acknowledged"],
    [299, "acknowledged"],
    [300, "retryable"],
    [301, "retryable"],
    [399, "retryable"],
    [400, "permanent"],
    [404, "permanent"],
    [410, "permanent"],
    [428, "permanent"],
    [429, "retryable"],
    [430, "permanent"],
    [499, "permanent"],
    [500, "retryable"],
    [503, "retryable"],
    [599, "retryable"],
  ] as const)("a %i answer is %s", (status, kind) => {
    expect(judge(responded(status), url).kind).toBe(kind);
  });

  test("a failure names the HTTP status and the URL", () => {
    const failure = { code: "http_status", reason: `HTTP 503 from ${url}` } as const;
    expect(judge(responded(503), url)).toEqual({ kind: "retryable", failure });
  });

  test.each([
    ["timeout", `No response within 10 s from ${url}`],
    ["connection_refused", `Connection refused by ${url}`],
    ["address_not_public", `The address of ${url} is not public`],
    ["dns_failed", `The host name of ${url} could not be resolved`],
    ["connection_reset", `Connection closed by ${url} without a response`],
  ] as const)("no answer because of %s is retryable and says so", (cause, reason) => {
    expect(judge(silent(cause), url)).toEqual({ kind: "retryable", failure: { code: cause, reason } });
  });

  test("what is known of a TLS failure is said", () => {
    expect(judge(silent("tls_failed", "certificate has expired"), url)).toEqual({
      kind: "retryable",
      failure: { code: "tls_failed", reason: `TLS connection to ${url} failed (certificate has expired)` },
    });
  });

  test.each([
    [429, "30"],
    [503, "30"],
    [500, undefined],
    [301, undefined],
  ] as const)("Retry-After on a %i counts as %p", (status, expected) => {
    const verdict = judge(responded(status, "30"), url);
    expect("retryAfter" in verdict ? verdict.retryAfter : undefined).toBe(expected as string);
  });
});
