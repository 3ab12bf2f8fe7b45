import { describe, expect, test } from "bun:test";
import { summarize } from "../../../web/verify/summary.ts";
import type { Finding } from "../../../web/verify/verify-delivery.ts";

type Verdict = Finding["verdict"];

const cases: readonly [service: Verdict, v1: Verdict, v1a: Verdict, timestamp: Verdict, sum: string][] = [
  ["valid", "valid", "valid", "valid", "genuine"],
  ["valid", "valid", "valid", "warning", "genuine"],
  ["valid", "not_checked", "valid", "valid", "genuine"],
  ["valid", "missing", "missing", "missing", "genuine"],
  ["missing", "valid", "missing", "valid", "genuine"],
  ["valid", "invalid", "valid", "valid", "partly"],
  ["invalid", "valid", "valid", "valid", "not_genuine"],
  ["valid", "valid", "invalid", "valid", "not_genuine"],
  ["unknown_key", "invalid", "unknown_key", "valid", "not_genuine"],
  ["missing", "invalid", "missing", "valid", "not_genuine"],
  ["missing", "not_checked", "missing", "missing", "nothing"],
  ["missing", "missing", "missing", "valid", "nothing"],
];

describe("what the findings of a delivery come to", () => {
  test.each(cases)("key %s, secret %s, key again %s, time %s: %s", (service, v1, v1a, timestamp, sum) => {
    const findings: Finding[] = [
      { check: "service-signature", verdict: service, message: "" },
      { check: "webhook-signature-v1", verdict: v1, message: "" },
      { check: "webhook-signature-v1a", verdict: v1a, message: "" },
      { check: "webhook-timestamp", verdict: timestamp, message: "" },
    ];
    expect(summarize(findings).verdict).toBe(sum as ReturnType<typeof summarize>["verdict"]);
  });
});
