import { describe, expect, test } from "bun:test";
import type { Reply } from "../../../../src/delivery/transport.ts";
import { judge } from "../../../../src/delivery/verdict.ts";
import { webhookRemovedReason } from "../../../../src/store/sqlite/deliveries.ts";
import { noWebhookReason } from "../../../../src/store/sqlite/events.ts";
import { explainReason } from "../../../../web/pages/events/reason.ts";

const url = "https://shop.example/hook";

/** The very text that the server writes. */
function reasonOf(reply: Reply): string {
  const verdict = judge(reply, url);
  if (verdict.kind === "acknowledged") throw new Error("This is no failure");
  return verdict.reason;
}

const body = { ended: true, received: () => new Uint8Array(), done: Promise.resolve() };
const answered = (status: number): Reply => ({ kind: "responded", status, retryAfter: undefined, body, durationMs: 1 });

describe("the reason of a failure is short, and is explained with what to do:", () => {
  test.each([
    [404, "refused the event with 404", "Fix the receiver"],
    [401, "permanent", "check the signature instead"],
    [429, "too many requests", "wait, then replay"],
    [302, "redirects are not followed", "Register the URL"],
    [503, "failed with 503", "When it works again"],
  ])("HTTP %i", (status, meaning, remedy) => {
    const reason = explainReason(reasonOf(answered(status)));
    expect(reason.short).toBe(`HTTP ${status}`);
    expect(reason.meaning).toContain(meaning);
    expect(reason.remedy).toContain(remedy);
  });

  test.each([
    ["timeout", "No response within 10 s"],
    ["dns", "Host name not found"],
    ["refused", "Connection refused"],
    ["unreachable", "Host not reached"],
    ["reset", "Connection closed"],
    ["tls", "TLS failure"],
    ["protocol", "Not an HTTP answer"],
    ["address_not_public", "Address not public"],
    ["aborted", "Interrupted"],
  ] as const)("no answer because of %s: %s", (cause, short) => {
    const text = reasonOf({ kind: "no-response", cause, durationMs: 1 });
    const reason = explainReason(text);
    expect(reason.short).toBe(short);
    // Another sentence than the reason itself.
    expect(reason.meaning).not.toContain(text);
    expect(reason.remedy).toEndWith(".");
  });

  test.each([
    [noWebhookReason, "No webhook was registered"],
    [webhookRemovedReason, "Webhook removed"],
  ])("%s", (text, short) => {
    expect(explainReason(text)).toMatchObject({ short, isAboutWebhooks: true });
  });

  test("one that the page does not know is shown as it is", () => {
    expect(explainReason("The moon was full")).toEqual({
      short: "The moon was full",
      meaning: "The moon was full.",
      remedy: "See to its cause, then replay.",
    });
  });
});
