import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { StoreBackend } from "../../support/store-backend.ts";
import {
  bytes,
  createWorld,
  newApiKeyRow,
  newSigningKeyRow,
  refusalOf,
  type World,
} from "../../support/store-factory.ts";

/** `CredentialVerbs` of `src/store/store.ts` as tests. */
export function credentialsContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    describe("credentials", () => {
      test("an API key is found by its hash, with its tenant", async () => {
        const apiKey = newApiKeyRow();
        const tenant = await world.tenant({ apiKey });
        expect(await world.store.findApiKey(apiKey.hash)).toEqual({ apiKeyId: apiKey.id, tenant, expiresAt: null });
        expect(await world.store.findApiKey(new Uint8Array(32))).toBeNull();
      });

      type Change = (key: number) => Promise<unknown>;
      const nothing: Change = async () => {};
      const changes: readonly [string, Change, Change][] = [
        ["another tier", nothing, (key) => world.store.setTier(key, "pro")],
        ["a suspension", nothing, (key) => world.store.suspend(key, "operator", 5)],
        [
          "the end of one",
          (key) => world.store.suspend(key, "payment", 1),
          (key) => world.store.resume(key, "payment"),
        ],
        ["another e-mail", nothing, (key) => world.store.changeEmail(key, "new@x.io")],
        ["another password", nothing, (key) => world.store.setPassword(key, "new")],
        ["a replaced password", nothing, (key) => world.store.replacePassword(key, "hash", "new")],
        ["the end of its sessions", nothing, (key) => world.store.endAllSessions(key)],
        [
          "an upgrade that waits for a card",
          nothing,
          (key) =>
            world.store.openVerification(key, { accountId: "bill_1", token: "t" }, { tier: "pro", login: null }, 5),
        ],
      ];
      test.each(changes)(
        "an API key stands for its account after %s, as soon as that is answered",
        async (_, prepare, change) => {
          const apiKey = newApiKeyRow();
          const { key, id } = await world.tenant({ apiKey, tier: "free" });
          await prepare(key);
          const before = await world.store.findApiKey(apiKey.hash);
          await change(key);
          const after = await world.store.findApiKey(apiKey.hash);
          expect(after?.tenant).not.toEqual(before?.tenant);
          expect(after?.tenant).toEqual((await world.store.findTenant(id)) ?? undefined);
        },
      );

      test("an API key says when it ends as soon as the rotation that ends it is answered", async () => {
        const apiKey = newApiKeyRow();
        const { key } = await world.tenant({ apiKey });
        expect(await world.store.findApiKey(apiKey.hash)).toMatchObject({ expiresAt: null });
        await world.store.rotateApiKey(key, newApiKeyRow(), 2_000, 1_000);
        expect(await world.store.findApiKey(apiKey.hash)).toMatchObject({ expiresAt: 2_000 });
      });

      test("a rotation ends the others at the earlier of their own end and the given one; all stay listed", async () => {
        const { key } = await world.tenant();
        const [first] = await world.store.apiKeys(key);
        const second = await world.store.rotateApiKey(key, newApiKeyRow(), 2_000, 1_000);
        const third = await world.store.rotateApiKey(key, newApiKeyRow(), 9_000, 1_500);
        expect((await world.store.apiKeys(key)).map(({ id, expiresAt }) => [id, expiresAt])).toEqual([
          [third.id, null],
          [second.id, 9_000],
          [first?.id ?? "", 2_000],
        ]);
        const untouched = await world.tenant();
        await world.store.rotateApiKey(key, newApiKeyRow(), 3_000, 2_000);
        expect((await world.store.apiKeys(untouched.key))[0]?.expiresAt).toBeNull();
      });

      test("a rotation that ends the others at once keeps them from being found, whatever the clock says later; all stay listed", async () => {
        const [first, second, third] = [newApiKeyRow(), newApiKeyRow(), newApiKeyRow()];
        const { key } = await world.tenant({ apiKey: first });
        const other = newApiKeyRow();
        await world.tenant({ apiKey: other });
        await world.store.rotateApiKey(key, second, 2_000, 1_000);
        await world.store.rotateApiKey(key, third, 3_000, 3_000);
        const found = await Promise.all(
          [first, second, third, other].map(async ({ hash }) => (await world.store.findApiKey(hash))?.apiKeyId ?? null),
        );
        expect(found).toEqual([null, null, third.id, other.id]);
        expect((await world.store.apiKeys(key)).map(({ id, expiresAt }) => [id, expiresAt])).toEqual([
          [third.id, null],
          [second.id, 3_000],
          [first.id, 2_000],
        ]);
      });

      test("the latest 1,000 API keys are kept, of this account alone; one that is forgotten is refused", async () => {
        const oldest = newApiKeyRow();
        const tenant = await world.tenant({ apiKey: oldest });
        const { key } = tenant;
        const untouched = await world.tenant();
        const now = world.clock.now();
        const rotate = (n: number) =>
          Promise.all(Array.from({ length: n }, () => world.store.rotateApiKey(key, newApiKeyRow(), now + 1_000, now)));
        await rotate(999);
        expect(await world.store.apiKeys(key)).toHaveLength(1_000);
        expect((await world.store.findApiKey(oldest.hash))?.apiKeyId).toBe(oldest.id);
        expect(await refusalOf(world.accept(tenant))).toBe("fulfilled");
        const [latest] = await rotate(1);
        const kept = await world.store.apiKeys(key);
        expect([kept.length, kept[0]?.id]).toEqual([1_000, latest?.id ?? ""]);
        expect(await world.store.findApiKey(oldest.hash)).toBeNull();
        expect(await refusalOf(world.accept(tenant))).toBe("unauthenticated unauthenticated");
        expect(await world.store.apiKeys(untouched.key)).toHaveLength(1);
      }, 120_000);

      test("the last use is noted, and keys that are gone are passed over", async () => {
        const apiKey = newApiKeyRow();
        const { key } = await world.tenant({ apiKey });
        await world.store.touchApiKeys(
          new Map([
            ["key_gone", 5],
            [apiKey.id, 7],
          ]),
        );
        expect((await world.store.apiKeys(key))[0]?.lastUsedAt).toBe(7);
      });

      test("signing keys are published until they retire, the newest first", async () => {
        const { key } = await world.tenant();
        const [first] = await world.store.signingKeys(key, 0);
        const now = world.clock.now();
        const second = await world.store.rotateSigningKey(key, newSigningKeyRow(), now + 100, now + 200, now + 50);
        const ids = async (at: number) => (await world.store.signingKeys(key, at)).map(({ id }) => id);
        expect(await ids(now + 199)).toEqual([second.id, first?.id ?? ""]);
        expect(await ids(now + 200)).toEqual([second.id]);
        expect(second).toMatchObject({ activatesAt: now + 100, retiresAt: null });
      });

      test("a signing key stays published although a newer one takes over before it: by a clock set back, it may be signing", async () => {
        const { key } = await world.tenant();
        const [first] = await world.store.signingKeys(key, 0);
        const now = world.clock.now();
        const second = await world.store.rotateSigningKey(key, newSigningKeyRow(), now + 1_000, now + 2_000, now);
        const third = await world.store.rotateSigningKey(key, newSigningKeyRow(), now, now + 3_000, now);
        const ids = async (at: number) => (await world.store.signingKeys(key, at)).map(({ id }) => id);
        expect(await ids(now)).toEqual([third.id, second.id, first?.id ?? ""]);
        expect(await ids(now + 2_999)).toEqual([third.id, second.id]);
        expect(await ids(now + 3_000)).toEqual([third.id]);
      });

      test("of 100 published signing keys none may be added until one retires", async () => {
        const { key } = await world.tenant();
        const now = world.clock.now();
        const rotate = (retireAt: number, at = now) =>
          world.store.rotateSigningKey(key, newSigningKeyRow(), at, retireAt, at);
        await rotate(now + 5_000);
        for (let n = 2; n < 100; n++) await rotate(now + 60_000);
        const all = await world.store.signingKeys(key, now);
        expect(all).toHaveLength(100);
        await expect(rotate(now + 60_000)).rejects.toMatchObject({
          code: "too_many_signing_keys",
          retryAfterSeconds: 5,
        });
        expect(await world.store.signingKeys(key, now)).toEqual(all);
        expect(await rotate(now + 60_000, now + 5_000)).toMatchObject({ retiresAt: null });
      });

      test("signing secrets sign until they expire, the newest first", async () => {
        const { key } = await world.tenant();
        await world.store.rotateSigningSecret(key, bytes("second"), 100, 50);
        const sealed = async (now: number) =>
          (await world.store.signingSecrets(key, now)).map((secret) => Buffer.from(secret.sealed).toString());
        expect((await sealed(99)).length).toBe(2);
        expect((await sealed(99))[0]).toBe("second");
        expect(await sealed(100)).toEqual(["second"]);
      });

      test("of signing secrets only the current one and the one before it are kept", async () => {
        const { key } = await world.tenant();
        for (const name of ["second", "third"]) await world.store.rotateSigningSecret(key, bytes(name), 100, 50);
        const secrets = await world.store.signingSecrets(key, 99);
        expect(secrets.map(({ sealed, expiresAt }) => [Buffer.from(sealed).toString(), expiresAt])).toEqual([
          ["third", null],
          ["second", 100],
        ]);
        expect((await world.count()).signing_secret).toBe(2);
      });

      test("a session ends once, however often it is ended, and no other does", async () => {
        const tenant = await world.tenant();
        expect(await world.store.findSession(tenant.id, "s1")).toEqual(tenant);
        await Promise.all([world.store.endSession("s1", 100), world.store.endSession("s1", 100)]);
        expect(await world.store.findSession(tenant.id, "s1")).toBeNull();
        expect(await world.store.findSession(tenant.id, "s2")).toEqual(tenant);
      });

      test("a session shows its account as it is, and ends with it", async () => {
        const { key, id } = await world.tenant();
        const changed = await world.store.endAllSessions(key);
        expect(await world.store.findSession(id, "s1")).toEqual(changed);
        await world.store.deleteTenant(key, world.clock.now());
        expect(await world.store.findSession(id, "s1")).toBeNull();
        expect(await world.store.findSession("t_none", "s1")).toBeNull();
      });

      test("an address is known from its last login on", async () => {
        const { key } = await world.tenant();
        const other = await world.tenant();
        await world.store.rememberLogin(key, "192.0.2.1", 100);
        await world.store.rememberLogin(key, "192.0.2.1", 200);
        expect(await world.store.hasLoggedInSince(key, "192.0.2.1", 200)).toBe(true);
        expect(await world.store.hasLoggedInSince(key, "192.0.2.1", 201)).toBe(false);
        expect(await world.store.hasLoggedInSince(key, "192.0.2.2", 0)).toBe(false);
        expect(await world.store.hasLoggedInSince(other.key, "192.0.2.1", 0)).toBe(false);
      });
    });
  });
}
