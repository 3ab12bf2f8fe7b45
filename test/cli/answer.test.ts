import { expect, test } from "bun:test";
import { refusalOf, temporaryFailureIn } from "../../src/cli/client/answer.ts";
import { startBulkReplay } from "../../src/domain/replay-phase.ts";

const rest = { text: "", retryAfterMs: null, location: null, etag: null, serverTime: null };
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
  const failure = temporaryFailureIn({ status, json, ...rest });
  const arrived = failure?.details.mayHaveArrived ? "may have arrived" : "nothing has arrived";
  expect(failure === null ? "final" : arrived).toBe(expected);
});

/** As the API words it. */
function tooManyToday(): string {
  const limits = { unfinished: 11, perDay: 100 };
  const begun = { unfinished: 0, nthLastBegunAt: 1 };
  const start = startBulkReplay({ gone: false }, begun, limits, true, { now: 2, orderedNow: 2 });
  return start.kind === "refused" ? start.error.message : "";
}

test.each([
  [tooManyToday(), null, "An account may start 100 bulk replays in 24 hours; replay single events."],
  [
    tooManyToday(),
    7_200_000,
    "An account may start 100 bulk replays in 24 hours; replay single events. Try: again in 2 h.",
  ],
  ["No; retry after the number of seconds in Retry-After.", 61_000, "No. Try: again in 1 min 1 s."],
  ["The month's quota is used up.", 61_000, "The month's quota is used up."],
])("the refusal %p, with %p ms in its header, reads %p", (message, retryAfterMs, expected) => {
  const reply = { ...rest, status: 429, json: { message, code: "rate_limited" }, retryAfterMs };
  expect(refusalOf({ url: "http://localhost" }, reply).message).toBe(expected);
});
