import { describe, expect, test } from "bun:test";
import { failureCodes } from "../../../src/domain/failure.ts";
import { explainFailure } from "../../../web/format/failure.ts";

const sentence = "The server's own sentence";
const explain = (errorCode: string | null, statusCode: number | null = null) =>
  explainFailure({ errorCode, statusCode }, sentence);

describe("the reason of a failure is short, and is explained with what to do:", () => {
  test.each([
    [404, "refused the event with 404", "Fix the receiver"],
    [401, "permanent", "check the signature instead"],
    [429, "too many requests", "wait, then replay"],
    [302, "redirects are not followed", "Register the URL"],
    [503, "failed with 503", "Replay once it works again"],
  ])("HTTP %i", (status, meaning, remedy) => {
    const reason = explain("http_status", status);
    expect(reason.short).toBe(`HTTP ${status}`);
    expect(reason.meaning).toContain(meaning);
    expect(reason.remedy).toContain(remedy);
  });

  test.each([
    ["timeout", "No response within 10 s"],
    ["dns_failed", "Host name not found"],
    ["connection_refused", "Connection refused"],
    ["host_unreachable", "Host unreachable"],
    ["connection_reset", "Connection closed"],
    ["tls_failed", "TLS failure"],
    ["protocol_error", "Not an HTTP response"],
    ["address_not_public", "Address not public"],
    ["interrupted", "Interrupted"],
    ["no_webhook", "No webhook was registered"],
    ["webhook_removed", "Webhook removed"],
    ["server_restored", "Server restored"],
    ["unreadable", "Event damaged"],
  ])("%s: %s", (code, short) => {
    expect(explain(code).short).toBe(short);
  });

  test.each(Object.keys(failureCodes))("%s in words of its own, whatever the server says", (code) => {
    const reason = explain(code, code === "http_status" ? 503 : null);
    expect(JSON.stringify(reason)).not.toContain(sentence);
    expect([reason.meaning, reason.remedy]).toEqual([expect.stringMatching(/\.$/), expect.stringMatching(/\.$/)]);
  });

  test.each(["no_webhook", "webhook_removed", "address_not_public"])("%s leads to the webhooks", (code) => {
    expect(explain(code).isAboutWebhooks).toBe(true);
  });

  test.each([null, "moon_was_full", "constructor", "http_status"])(
    "with the code %p, which the page does not know, the server's sentence stands as it is",
    (code) => {
      expect(explain(code)).toEqual({
        short: sentence,
        meaning: `${sentence}.`,
        remedy: "Fix the cause, then replay.",
      });
    },
  );
});
