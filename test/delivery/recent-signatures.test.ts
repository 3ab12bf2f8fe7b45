import { describe, expect, test } from "bun:test";
import { createRecentSignatures } from "../../src/delivery/recent-signatures.ts";
import { buildRequest } from "../../src/delivery/request.ts";
import { type SignedContent, type SignerMaterial, sign } from "../../src/delivery/signature.ts";
import { encodeEventId, nextEventSeq, randomTail } from "../../src/lib/id.ts";
import { dueDelivery, signerMaterial } from "../support/due-delivery.ts";

const material = signerMaterial();
const timestampSeconds = 1_768_478_400;

const event = (n: number): SignedContent => ({
  eventId: `evt_${n}`,
  body: Buffer.from(`{"eventId":"evt_${n}"}`),
  timestampSeconds,
});

/** Signs, and counts how often it had to. */
function counted() {
  let count = 0;
  const signEvent = createRecentSignatures((of, content) => {
    count += 1;
    return sign(of, content);
  });
  return { signEvent, count: () => count };
}

describe("recent signatures", () => {
  test("an event is signed once for all its webhooks, with what signing anew would give", () => {
    const { signEvent, count } = counted();
    const anew = sign(material, event(7));
    for (const _ of ["first", "second", "third"]) expect(signEvent(material, event(7))).toEqual(anew);
    expect(count()).toBe(1);
  });

  const other: SignerMaterial = signerMaterial();
  test.each<[string, SignerMaterial, SignedContent]>([
    ["another event", material, event(8)],
    ["a later second", material, { ...event(7), timestampSeconds: timestampSeconds + 1 }],
    ["a new key or secret", other, event(7)],
  ])("%s is signed anew", (_, of, content) => {
    const { signEvent, count } = counted();
    signEvent(material, event(7));
    expect(signEvent(of, content)).toEqual(sign(of, content));
    expect(count()).toBe(2);
  });

  test("a test delivery and an event of the same millisecond, which share a number, each get their own", () => {
    const { signEvent } = counted();
    const now = timestampSeconds * 1000;
    const eventSeq = nextEventSeq(0, now);
    for (const payload of ['{"is":"a test"}', '{"is":"an event"}']) {
      const ids = { eventSeq, eventId: encodeEventId(eventSeq, randomTail()) };
      const delivery = { ...dueDelivery(), ...ids, payload: Buffer.from(payload) };
      const { headers } = buildRequest(delivery, material, now, [], signEvent);
      expect(headers).toEqual(buildRequest(delivery, material, now).headers);
    }
  });

  test("events between two deliveries of one do no harm", () => {
    const { signEvent, count } = counted();
    const numbers = Array.from({ length: 100 }, (_, i) => 1_000 + i);
    for (const n of [...numbers, ...numbers]) expect(signEvent(material, event(n))).toEqual(sign(material, event(n)));
    expect(count()).toBe(numbers.length);
  });

  test("an event is forgotten after some hundred others, and signed anew", () => {
    const { signEvent, count } = counted();
    for (let n = 0; n < 300; n += 1) signEvent(material, event(n));
    expect(signEvent(material, event(0))).toEqual(sign(material, event(0)));
    expect(count()).toBe(301);
  });
});
