import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { makeSigningKey, makeSigningSecret } from "../../src/accounts/signing-keys.ts";
import { createSigners } from "../../src/delivery/signers.ts";
import type { SigningKey } from "../../src/domain/credentials.ts";
import { createVault } from "../../src/lib/vault.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { refusalOf } from "../support/store-factory.ts";

const vault = createVault(randomBytes(32));

/** An account whose keys, the newest first, begin to sign at these distances from now. */
function setUp(...activatesIn: number[]) {
  const clock = createFakeClock();
  const keys = activatesIn.map((ms): SigningKey => {
    return { ...makeSigningKey(vault, "t1"), activatesAt: clock.now() + ms, retiresAt: null };
  });
  const signers = createSigners({
    store: {
      signingKeys: async () => [...keys],
      signingSecrets: async () => [{ sealed: makeSigningSecret(vault, "t1"), expiresAt: null }],
    },
    vault,
    clock,
  });
  const keyId = async () => (await signers.materialFor(1, "t1")).keyId;
  return { keys, clock, keyId, signers };
}

describe("what a delivery is signed with", () => {
  test("is the newest key that is active", async () => {
    const { keys, keyId } = setUp(60_000, -1, -2);
    expect(await keyId()).toBe(keys[1]?.id ?? "");
  });

  test("changes with the activation of the next key", async () => {
    const { keys, clock, keyId } = setUp(5_000, -1);
    expect(await keyId()).toBe(keys[1]?.id ?? "");
    clock.advance(5_000);
    expect(await keyId()).toBe(keys[0]?.id ?? "");
  });

  test("is nothing once the account has been erased, which is no defect", async () => {
    const { keyId } = setUp();
    expect(await refusalOf(keyId())).toBe("unauthenticated account_gone");
  });

  test("is the first key of an account also when the clock has stepped back behind its creation", async () => {
    const { keys, keyId } = setUp(90_000, 60_000);
    expect(await keyId()).toBe(keys[1]?.id ?? "");
  });

  test("is the new key as soon as a rotation is answered, also when a read of the old one is under way", async () => {
    const { keys, keyId, signers } = setUp(-1);
    const old = keys[0]?.id ?? "";
    const overtaken = keyId();
    keys.unshift({ ...makeSigningKey(vault, "t1"), activatesAt: 0, retiresAt: null });
    signers.forget(1);
    expect(await overtaken).toBe(old);
    expect(await keyId()).toBe(keys[0]?.id ?? "");
    expect(keys[0]?.id).not.toBe(old);
  });
});
