import { expect, test } from "bun:test";
import { payloadFault, sampleOf, testBody } from "../../../../web/pages/webhook/own-test.ts";

test.each([
  [null, "order.created"],
  [["postrider.*", "refund.*", "order.paid"], "refund.created"],
  [["order.paid"], "order.paid"],
  [["postrider.*"], "order.created"],
])("a sample for a webhook that takes %j is a payload of the type %s", (event_types, type) => {
  const sample = sampleOf({ event_types });
  expect(JSON.parse(sample)).toMatchObject({ event_type: type });
  expect(payloadFault(sample)).toBeNull();
});

test.each(["", "{", '{"a":01}', '{},"a":1', "[]", "null", '"text"', "7"])("%j is no payload", (text) => {
  expect(payloadFault(text)).toMatch(/^(Not valid JSON: |A payload is a JSON object)/);
});

test("what is typed is sent as it stands", () => {
  const payload = '{ "n": 12345678901234567890, "n": 1.0 }';
  expect(testBody(payload, "")).toBe(`{"payload":${payload}}`);
  expect(testBody(payload, 'a"b')).toBe(`{"payload":${payload},"event_type":"a\\"b"}`);
});
