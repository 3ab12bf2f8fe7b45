import { expect, test } from "bun:test";
import type { FailureCode } from "../../src/domain/failure.ts";
import { isOwnOutage, leastOutageMs, type Silence, silenceAfter } from "../../src/domain/own-outage.ts";

/**
 * "host code", one after the other, half a minute apart; without a code it was acknowledged. "host! code": it was silent
 * before, while another host answered.
 */
function after(...attempts: string[]): Silence | null {
  let silence: Silence | null = null;
  attempts.forEach((attempt, i) => {
    const [host = "", code] = attempt.split(" ");
    const errorCode = (code as FailureCode | undefined) ?? null;
    const attempted = { host: host.replace("!", ""), startedAt: (i * leastOutageMs) / 2, errorCode };
    silence = silenceAfter(silence, { ...attempted, isDownByItself: host.endsWith("!") });
  });
  return silence;
}

test.each<[string, boolean, string[]]>([
  ["two hosts do not answer for a minute", true, ["a timeout", "b timeout", "a timeout", "b timeout"]],
  [
    "two hosts do not, each in its way",
    true,
    ["a connection_refused", "b dns_failed", "a connection_reset", "b tls_failed"],
  ],
  ["three hosts do not", true, ["a tls_failed", "b host_unreachable", "c connection_reset", "a timeout"]],
  ["two hosts do not, for less than a minute", false, ["a timeout", "b timeout", "a timeout"]],
  ["two hosts do not once, and nothing was tried since", false, ["a timeout", "b timeout"]],
  [
    "a second host joins one that has been silent for long",
    false,
    ["a timeout", "a timeout", "a timeout", "b timeout"],
  ],
  ["one host does not, however often", false, ["a timeout", "a dns_failed", "a timeout", "a timeout"]],
  ["one answers in between", false, ["a timeout", "b timeout", "c", "a timeout", "b timeout"]],
  ["one answers with a failure in between", false, ["a timeout", "b timeout", "c http_status", "b timeout"]],
  ["one answers nonsense in between", false, ["a timeout", "b timeout", "c protocol_error", "b timeout"]],
  [
    "the proxy lets nothing through to two",
    true,
    ["a proxy_failed", "b proxy_failed", "a proxy_failed", "b proxy_failed"],
  ],
  ["the proxy lets nothing through to one", false, ["a proxy_failed", "c", "a proxy_failed"]],
  ["two are refused by their address", false, ["a address_not_public", "b address_not_public", "a address_not_public"]],
  ["an address that is refused is no answer", true, ["a timeout", "b timeout", "c address_not_public", "b timeout"]],
  ["two hosts were down before", false, ["a! timeout", "b! timeout", "a! timeout", "b! timeout"]],
  ["one was down before", false, ["a! timeout", "b timeout", "a! timeout", "b timeout"]],
  [
    "one was down before, and two others go silent",
    true,
    ["a! timeout", "b timeout", "c timeout", "a! timeout", "b timeout"],
  ],
  ["a host answers again", false, ["a timeout", "b timeout", "a timeout", "b timeout", "b"]],
])("when %s, it is our own outage: %p", (_, expected, attempts) => {
  expect(isOwnOutage(after(...attempts))).toBe(expected);
});

test("it began with the first attempt since the last answer, and is proven until the latest attempt", () => {
  const silence = after("a timeout", "b", "b timeout", "b timeout", "c timeout", "d! timeout");
  const [since, sharedSince] = [leastOutageMs, 2 * leastOutageMs];
  expect(silence).toEqual({ host: "b", since, sharedSince, until: sharedSince });
});
