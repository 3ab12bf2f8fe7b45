import { describe, expect, test } from "bun:test";
import { createHmac, createPublicKey, verify as verifyBytes } from "node:crypto";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import nacl from "tweetnacl";
import {
  generateSecret,
  generateSigningKey,
  importPrivateKey,
  jwk,
  type SignerMaterial,
  secretBytes,
  sign,
} from "../../src/delivery/signature.ts";

const keyPair = generateSigningKey();
const secrets = [generateSecret(), generateSecret()] as const;
const eventId = "evt_01k0000000e0r80000000000zz";
const timestampSeconds = Math.floor(Date.now() / 1000);
const body = Buffer.from(`{"eventId":"${eventId}","tenantId":"t0","payload":{"a":12345678901234567890,"b":"é漢🦉"}}`);

const material = (...own: string[]): SignerMaterial => ({
  keyId: "sgk_1",
  privateKey: importPrivateKey(keyPair.privateSeed),
  secrets: own.map(secretBytes),
});

const signed = (bytes = body, ...own: string[]) => sign(material(...own), { eventId, body: bytes, timestampSeconds });

const headers = (webhookSignature: string, over: Record<string, string> = {}) => ({
  "webhook-id": eventId,
  "webhook-timestamp": String(timestampSeconds),
  "webhook-signature": webhookSignature,
  ...over,
});

const flipped = (bytes: Uint8Array, bit: number) => {
  const changed = Buffer.from(bytes);
  changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return changed;
};

describe("Service-Signature", () => {
  test("is the standard base64 of a 64-byte signature over the exact body, by tweetnacl's reckoning", () => {
    const { serviceSignature } = signed(body, secrets[0]);
    expect(serviceSignature).toMatch(/^[A-Za-z0-9+/]{86}==$/);
    const signature = Uint8Array.from(Buffer.from(serviceSignature, "base64"));
    expect(nacl.sign.detached.verify(body, signature, keyPair.publicKey)).toBe(true);
  });

  test("is byte for byte what tweetnacl signs with the same seed", () => {
    const { secretKey } = nacl.sign.keyPair.fromSeed(Uint8Array.from(keyPair.privateSeed));
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const theirs = nacl.sign.detached(bytes, secretKey);
        expect(signed(Buffer.from(bytes)).serviceSignature).toBe(Buffer.from(theirs).toString("base64"));
      }),
      { numRuns: 30 },
    );
  });

  test("verifies with the key of the JWK set, and with one bit flipped anywhere it does not", () => {
    const key = createPublicKey({ key: { ...jwk(keyPair.publicKey, "sgk_1") }, format: "jwk" });
    const signature = Buffer.from(signed().serviceSignature, "base64");
    expect(verifyBytes(null, body, key, signature)).toBe(true);
    for (let bit = 0; bit < body.length * 8; bit += 7) {
      expect(verifyBytes(null, flipped(body, bit), key, signature)).toBe(false);
    }
    for (let bit = 0; bit < signature.length * 8; bit += 7) {
      expect(verifyBytes(null, body, key, flipped(signature, bit))).toBe(false);
    }
  });

  test("covers a body that is a view in the middle of other bytes, and changes none of them", () => {
    const surroundings = Buffer.concat([Buffer.from("before"), body, Buffer.from("after")]);
    const copy = Buffer.from(surroundings);
    expect(signed(surroundings.subarray(6, 6 + body.length), ...secrets)).toEqual(signed(body, ...secrets));
    expect(surroundings.equals(copy)).toBe(true);
  });
});

describe("webhook-signature", () => {
  test("has one v1 for each secret, newest first, and one v1a", () => {
    const { webhookSignature } = signed(body, ...secrets);
    expect(webhookSignature).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}= v1a,[A-Za-z0-9+/]{86}==$/);
    const expected = createHmac("sha256", secretBytes(secrets[0])).update(`${eventId}.${timestampSeconds}.${body}`);
    expect(webhookSignature.split(" ")[0]).toBe(`v1,${expected.digest("base64")}`);
    expect(signed(body, secrets[0]).webhookSignature).toMatch(/^v1,\S+ v1a,\S+$/);
  });

  test("agrees with the test vector of the standard's own libraries", () => {
    const vector = sign(material("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), {
      eventId: "msg_p5jXN8AQM9LWM0D4loKWxJek",
      timestampSeconds: 1614265330,
      body: Buffer.from('{"test": 2432232314}'),
    });
    expect(vector.webhookSignature).toStartWith("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1a,");
  });

  test.each([
    ["the newest secret", secrets[0]],
    ["the one before", secrets[1]],
  ])("verifies in the standardwebhooks package with %s", (_, secret) => {
    const { webhookSignature } = signed(body, ...secrets);
    const webhook = new Webhook(secret);
    expect(webhook.verify(body.toString(), headers(webhookSignature))).toEqual(JSON.parse(body.toString()));
    expect(webhook.verify(body, headers(webhookSignature))).toEqual(JSON.parse(body.toString()));
  });

  test("does not verify with another secret, body, id or time", () => {
    const { webhookSignature } = signed(body, ...secrets);
    const webhook = new Webhook(secrets[0]);
    const fails = (run: () => unknown) => expect(run).toThrow("No matching signature found");
    fails(() => new Webhook(generateSecret()).verify(body, headers(webhookSignature)));
    fails(() => webhook.verify(`${body} `, headers(webhookSignature)));
    fails(() => webhook.verify(body, headers(webhookSignature, { "webhook-id": `${eventId}0` })));
    fails(() => webhook.verify(body, headers(webhookSignature, { "webhook-timestamp": String(timestampSeconds - 1) })));
  });

  test("carries in v1a the Ed25519 signature over id, time and body", () => {
    const [, v1a = ""] = signed(body, ...secrets).webhookSignature.split("v1a,");
    const signature = Uint8Array.from(Buffer.from(v1a, "base64"));
    const content = (time: number) => Buffer.from(`${eventId}.${time}.${body}`);
    expect(nacl.sign.detached.verify(content(timestampSeconds), signature, keyPair.publicKey)).toBe(true);
    expect(nacl.sign.detached.verify(content(timestampSeconds + 1), signature, keyPair.publicKey)).toBe(false);
    expect(nacl.sign.detached.verify(body, signature, keyPair.publicKey)).toBe(false);
  });

  test("has v1a alone when there is no secret", () => {
    expect(signed().webhookSignature).toMatch(/^v1a,\S+$/);
  });
});

describe("signing keys", () => {
  test("are the pair of 32 bytes that RFC 8032 derives: its first test vector", () => {
    const seed = Buffer.from("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "hex");
    const empty = sign(
      { keyId: "k", privateKey: importPrivateKey(seed), secrets: [] },
      { eventId, body: Buffer.alloc(0), timestampSeconds },
    );
    expect(Buffer.from(empty.serviceSignature, "base64").toString("hex")).toBe(
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    );
  });

  test("belong together and are new each time", () => {
    const other = generateSigningKey();
    expect([other.publicKey.length, other.privateSeed.length]).toEqual([32, 32]);
    expect(Buffer.from(nacl.sign.keyPair.fromSeed(Uint8Array.from(other.privateSeed)).publicKey)).toEqual(
      Buffer.from(other.publicKey),
    );
    expect(Buffer.from(other.privateSeed).equals(keyPair.privateSeed)).toBe(false);
  });

  test("are published as RFC 8037 shows them, without the private half", () => {
    // RFC 8037, appendix A.2.
    const publicKey = Buffer.from("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "hex");
    expect(jwk(publicKey, "sgk_1")).toEqual({
      kty: "OKP",
      crv: "Ed25519",
      x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
      kid: "sgk_1",
      use: "sig",
      alg: "EdDSA",
    });
  });

  test.each([0, 31, 33, 64])("are not made of a seed of %i bytes", (length) => {
    expect(() => importPrivateKey(new Uint8Array(length))).toThrow(`must be 32 bytes, not ${length}`);
  });
});

describe("webhook secrets", () => {
  test("are whsec_ and the base64 of 32 bytes, new each time", () => {
    const made = Array.from({ length: 100 }, generateSecret);
    for (const secret of made) {
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(secretBytes(secret).length).toBe(32);
    }
    expect(new Set(made).size).toBe(made.length);
  });

  const encoded = (length: number) => Buffer.alloc(length, 7).toString("base64");
  test("hold 24 to 64 bytes", () => {
    for (const length of [24, 25, 64]) expect(secretBytes(`whsec_${encoded(length)}`).length).toBe(length);
    for (const length of [0, 23, 65]) expect(() => secretBytes(`whsec_${encoded(length)}`)).toThrow();
  });

  test.each([
    ["no prefix", encoded(32)],
    ["another prefix", `whsk_${encoded(32)}`],
    ["base64url", `whsec_${"_".repeat(43)}=`],
    ["no padding", `whsec_${encoded(32).slice(0, -1)}`],
    ["white space", `whsec_ ${encoded(32)}`],
    ["loose last bits", `whsec_${"A".repeat(42)}B=`],
  ])("with %s are refused, without repeating them", (_, secret) => {
    expect(() => secretBytes(secret)).toThrow('A webhook secret must be "whsec_" followed by 24 to 64 bytes in base64');
  });
});
