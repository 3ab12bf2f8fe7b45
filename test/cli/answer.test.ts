import { expect, test } from "bun:test";
import { temporaryFailureIn } from "../../src/cli/client/answer.ts";

const own = (code: string) => ({ message: "No.", code });

test.each([
  ["Postrider that is busy", 503, own("busy"), "nothing has arrived"],
  ["Postrider's rate limit", 429, own("rate_limited"), "nothing has arrived"],
  ["a proxy's rate limit", 429, null, "nothing has arrived"],
  ["a proxy's 503", 503, null, "may have arrived"],
  ["a proxy's 502", 502, null, "may have arrived"],
  ["a proxy's 504, with words of its own", 504, { message: "Timeout." }, "may have arrived"],
  ["a proxy's own failure", 500, null, "may have arrived"],
  ["a CDN whose server is away", 521, null, "may have arrived"],
  ["a CDN that has waited in vain", 524, null, "may have arrived"],
  ["a used-up quota", 429, own("quota_exceeded"), "final"],
  ["damaged data", 503, own("storage_damaged"), "final"],
  ["a defect of Postrider", 500, own("internal_error"), "final"],
  ["a server that cannot do it", 501, null, "final"],
  ["a server of another protocol version", 505, null, "final"],
  ["an address that is not Postrider's", 404, null, "final"],
] as const)("the answer of %s, %i: %o is %s", (_, status, json, expected) => {
  const rest = { text: "", retryAfterMs: null, location: null, etag: null, serverTime: null };
  const failure = temporaryFailureIn({ status, json, ...rest });
  const arrived = failure?.details.mayHaveArrived ? "may have arrived" : "nothing has arrived";
  expect(failure === null ? "final" : arrived).toBe(expected);
});
