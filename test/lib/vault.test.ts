import { describe, expect, test } from "bun:test";
import { createDecipheriv, randomBytes } from "node:crypto";
import fc from "fast-check";
import { createKeyring, createVault } from "../../src/lib/vault.ts";

const masterKey = Uint8Array.from({ length: 32 }, (_, at) => at);
const vault = createVault(masterKey);
const secret = "svc_sk_top-secret";
const context = "t0123456789abc:key_1";
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof Error) return error.message;
  }
  throw new Error("nothing was thrown");
}

describe("the vault", () => {
  test("opens what it sealed, bytes and text of any length", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: "grapheme" }), fc.uint8Array({ maxLength: 300 })),
        fc.string(),
        (plain, place) => {
          const opened = vault.open(vault.seal(plain, place), place);
          expect(Buffer.from(opened)).toEqual(Buffer.from(plain as string));
        },
      ),
    );
  });

  test("writes version, nonce, ciphertext and tag, as any AES-256-GCM reads them", () => {
    const sealed = vault.seal(secret, context);
    expect(sealed.length).toBe(1 + 12 + secret.length + 16);
    expect(sealed[0]).toBe(1);
    const decipher = createDecipheriv("aes-256-gcm", masterKey, sealed.subarray(1, 13));
    decipher.setAAD(Buffer.from(context));
    decipher.setAuthTag(sealed.subarray(-16));
    expect(decipher.update(sealed.subarray(13, -16), undefined, "utf8") + decipher.final("utf8")).toBe(secret);
  });

  test("gives another result for the same input each time", () => {
    const sealed = Array.from({ length: 100 }, () => Buffer.from(vault.seal(secret, context)).toString("hex"));
    expect(new Set(sealed.map((hex) => hex.slice(2, 26))).size).toBe(100);
    expect(new Set(sealed.map((hex) => hex.slice(26))).size).toBe(100);
    expect(sealed.join("")).not.toContain(Buffer.from(secret).toString("hex"));
  });

  test("opens a value in its own context only", () => {
    const sealed = vault.seal(secret, context);
    for (const other of ["", "t0123456789abc:key_2", "t0123456789abc:key_", `${context} `, "t0123456789abd:key_1"]) {
      expect(() => vault.open(sealed, other)).toThrow("cannot be decrypted");
    }
  });

  test("opens a value with its own master key only", () => {
    const sealed = vault.seal(secret, context);
    expect(() => createVault(randomBytes(32)).open(sealed, context)).toThrow("the master key is wrong");
    expect(text(createVault(masterKey).open(sealed, context))).toBe(secret);
  });

  test("refuses a value in which any one bit is flipped", () => {
    const sealed = vault.seal(secret, context);
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Uint8Array.from(sealed);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => vault.open(changed, context)).toThrow("cannot be decrypted");
    }
  });

  test("refuses a value that is cut or has grown", () => {
    const sealed = vault.seal(secret, context);
    for (let length = 0; length < sealed.length; length++) {
      expect(() => vault.open(sealed.subarray(0, length), context)).toThrow("cannot be decrypted");
    }
    expect(() => vault.open(new Uint8Array([...sealed, 0]), context)).toThrow("cannot be decrypted");
  });

  test("names in its errors the place and a remedy, and no secret", () => {
    const sealed = vault.seal(secret, context);
    const errors = [
      messageOf(() => createVault(randomBytes(32)).open(sealed, context)),
      messageOf(() => vault.open(sealed.subarray(0, 20), context)),
      messageOf(() => vault.open(Uint8Array.from(sealed).fill(9, 0, 1), context)),
    ];
    const never = [secret, Buffer.from(masterKey).toString("hex"), Buffer.from(sealed).toString("hex", 13)];
    for (const error of errors) {
      expect(error).toContain(context);
      expect(error).toContain("Try: ");
      for (const leak of never) expect(error).not.toContain(leak);
    }
  });

  test("keeps its own copy of the master key", () => {
    const mine = Uint8Array.from(masterKey);
    const kept = createVault(mine);
    mine.fill(0);
    expect(text(kept.open(vault.seal(secret, context), context))).toBe(secret);
  });

  test.each([0, 16, 31, 33])("refuses a master key of %i bytes", (length) => {
    expect(() => createVault(new Uint8Array(length))).toThrow(`The master key must be 32 bytes, not ${length}`);
  });
});

describe("a ring of keys", () => {
  const [one, two, three] = [1, 2, 3].map((n) => new Uint8Array(32).fill(n)) as [Uint8Array, Uint8Array, Uint8Array];

  test("seals with one, and opens what any of them has sealed", () => {
    const ring = createKeyring(one);
    const early = ring.seal("early", "t:1");
    ring.learn(two);
    ring.learn(two);
    expect(ring.keys).toEqual([one, two]);
    expect(ring.key).toEqual(one);
    ring.sealWith(two);
    expect(ring.keys).toEqual([two, one]);
    const late = ring.seal("late", "t:1");
    expect([early, late].map((sealed) => Buffer.from(ring.open(sealed, "t:1")).toString())).toEqual(["early", "late"]);
    expect([early, late].map((sealed) => ring.keyOf(sealed, "t:1"))).toEqual([one, two]);
    expect(() => createVault(one).open(late, "t:1")).toThrow("the master key is wrong");
  });

  test("says of what none of them has sealed what a vault says", () => {
    const ring = createKeyring(one);
    const strange = createVault(three).seal("x", "t:1");
    expect(ring.keyOf(strange, "t:1")).toBeNull();
    expect(() => ring.open(strange, "t:1")).toThrow("of t:1 cannot be decrypted: the master key is wrong");
    expect(() => ring.open(new Uint8Array(3), "t:1")).toThrow("it is too short");
  });
});
