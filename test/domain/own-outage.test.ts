import { expect, test } from "bun:test";
import type { FailureCode } from "../../src/domain/failure.ts";
import { isOwnOutage, type Silence, silenceAfter } from "../../src/domain/own-outage.ts";

/** "host code", one after the other; without a code it was acknowledged. */
function after(...attempts: string[]): Silence | null {
  let silence: Silence | null = null;
  attempts.forEach((attempt, i) => {
    const [host = "", code] = attempt.split(" ");
    silence = silenceAfter(silence, { host, startedAt: i, errorCode: (code as FailureCode | undefined) ?? null });
  });
  return silence;
}

test.each<[string, boolean, string[]]>([
  ["two hosts do not answer", true, ["a timeout", "b timeout"]],
  ["two hosts do not answer, each in its way", true, ["a connection_refused", "b dns_failed"]],
  ["three hosts do not", true, ["a tls_failed", "b host_unreachable", "c connection_reset"]],
  ["one host does not, however often", false, ["a timeout", "a dns_failed", "a timeout"]],
  ["one answers in between", false, ["a timeout", "c", "b timeout"]],
  ["one answers with a failure in between", false, ["a timeout", "c http_status", "b timeout"]],
  ["one answers nonsense in between", false, ["a timeout", "c protocol_error", "b timeout"]],
  ["the proxy lets nothing through to two", true, ["a proxy_failed", "b proxy_failed"]],
  ["the proxy lets nothing through to one", false, ["a proxy_failed", "c", "a proxy_failed"]],
  ["two are refused by their address", false, ["a address_not_public", "b address_not_public"]],
  ["an address that is refused is no answer", true, ["a timeout", "c address_not_public", "b timeout"]],
  ["a host answers again", false, ["a timeout", "b timeout", "b"]],
])("when %s, it is our own outage: %p", (_, expected, attempts) => {
  expect(isOwnOutage(after(...attempts))).toBe(expected);
});

test("it began with the first attempt since the last answer", () => {
  expect(after("a timeout", "b", "b timeout", "b timeout", "c timeout")).toEqual({ since: 2, hosts: ["b", "c"] });
});
