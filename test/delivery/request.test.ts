import { describe, expect, test } from "bun:test";
import { buildRequest, encodeLabel } from "../../src/delivery/request.ts";
import { dueDelivery, signerMaterial } from "../support/due-delivery.ts";

const { eventId } = dueDelivery();
const material = signerMaterial();

const now = 1_768_478_400_999;

describe('buildRequest (specification, "Deliveries")', () => {
  test("wraps the payload's own bytes, in the specified order, without white space of ours", () => {
    expect(buildRequest(dueDelivery(), material, now).body.toString()).toBe(
      `{"eventId":"${eventId}","tenantId":"t0000000000001","ingestionTimestamp":"2026-01-15T12:00:00.007Z",` +
        '"payload":{ "a" : 1.0, "a":12345678901234567890, "__proto__":null }}',
    );
  });

  test("carries the specified headers and those of Standard Webhooks", () => {
    const { headers } = buildRequest(dueDelivery(), material, now);
    expect(headers).toMatchObject({
      "Content-Type": "application/json",
      "Service-Event-Id": eventId,
      "Service-Key-Id": "sk_1",
      "webhook-id": eventId,
      "webhook-timestamp": "1768478400",
    });
    expect(headers["Service-Signature"]).toMatch(/^[A-Za-z0-9+/]{86}==$/);
    expect(headers["webhook-signature"]).toMatch(/^v1,[A-Za-z0-9+/=]{44} v1a,[A-Za-z0-9+/=]{88}$/);
    expect(headers["Service-Replay-Group"]).toBeUndefined();
  });

  test("a replay is tagged with its label", () => {
    const { headers } = buildRequest(dueDelivery({ replayGroupId: "März 100%\n" }), material, now);
    expect(headers["Service-Replay-Group"]).toBe("M%C3%A4rz%20100%25%0A");
  });
});

describe("encodeLabel (rules, section 8)", () => {
  test.each([
    ["incident-42", "incident-42"],
    ["a b", "a%20b"],
    ["100%", "100%25"],
    ["日本", "%E6%97%A5%E6%9C%AC"],
    ["a\r\nb", "a%0D%0Ab"],
  ])("%p becomes %p", (label, encoded) => {
    expect(encodeLabel(label)).toBe(encoded);
  });

  test("1,024 bytes are sent, more are left out", () => {
    expect(encodeLabel("x".repeat(1024))).toHaveLength(1024);
    expect(encodeLabel("x".repeat(1025))).toBeNull();
    expect(encodeLabel("ü".repeat(171))).toBeNull();
  });
});
