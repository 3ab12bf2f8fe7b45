import { describe, expect, test } from "bun:test";
import { createRecentSignatures, type SignedEvent } from "../../src/delivery/recent-signatures.ts";
import { type SignerMaterial, sign } from "../../src/delivery/signature.ts";
import { signerMaterial } from "../support/due-delivery.ts";

const material = signerMaterial();
const timestampSeconds = 1_768_478_400;

const event = (eventSeq: number): SignedEvent => ({
  eventSeq,
  eventId: `evt_${eventSeq}`,
  body: Buffer.from(`{"eventId":"evt_${eventSeq}"}`),
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
  test.each<[string, SignerMaterial, SignedEvent]>([
    ["another event", material, event(8)],
    ["a later second", material, { ...event(7), timestampSeconds: timestampSeconds + 1 }],
    ["a new key or secret", other, event(7)],
  ])("%s is signed anew", (_, of, content) => {
    const { signEvent, count } = counted();
    signEvent(material, event(7));
    expect(signEvent(of, content)).toEqual(sign(of, content));
    expect(count()).toBe(2);
  });

  test("events between two deliveries of one do no harm", () => {
    const { signEvent, count } = counted();
    const seqs = Array.from({ length: 100 }, (_, n) => 1_000 + n);
    for (const seq of [...seqs, ...seqs]) expect(signEvent(material, event(seq))).toEqual(sign(material, event(seq)));
    expect(count()).toBe(seqs.length);
  });

  test("an event is forgotten after some hundred others, and signed anew", () => {
    const { signEvent, count } = counted();
    for (let seq = 0; seq < 300; seq += 1) signEvent(material, event(seq));
    expect(signEvent(material, event(0))).toEqual(sign(material, event(0)));
    expect(count()).toBe(301);
  });
});
