import { generateSecret, generateSigningKey, importPrivateKey, secretBytes } from "../../src/delivery/signature.ts";
import type { DueDelivery } from "../../src/domain/delivery.ts";
import { usualSettings } from "../../src/domain/webhook.ts";
import { encodeEventId } from "../../src/lib/id.ts";

const eventSeq = Date.UTC(2026, 0, 15, 12, 0, 0, 7) * 2048;

/** A delivery as the queue hands it out. */
export const dueDelivery = (changes: Partial<DueDelivery> = {}): DueDelivery => ({
  deliveryKey: 1,
  tenantKey: 1,
  tenantId: "t0000000000001",
  tier: "free",
  webhookKey: 1,
  url: "https://shop.example/hook",
  limits: usualSettings,
  sealedHeaders: null,
  eventSeq,
  eventId: encodeEventId(eventSeq, new Uint8Array([0x80, 1, 2, 3, 4, 5, 6, 7])),
  payload: Buffer.from('{ "a" : 1.0, "a":12345678901234567890, "__proto__":null }'),
  trace: null,
  run: 1,
  attemptsInRun: 0,
  attempts: 0,
  replayKey: null,
  replayGroupId: null,
  orderHash: null,
  ...changes,
});

/** Fresh keys. */
export const signerMaterial = () => ({
  keyId: "sk_1",
  privateKey: importPrivateKey(generateSigningKey().privateSeed),
  secrets: [secretBytes(generateSecret())],
});
