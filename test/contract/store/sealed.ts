import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Change } from "../../../src/domain/change.ts";
import { createVault } from "../../../src/lib/vault.ts";
import { beforeAll, type SealedPlace, type SealedRef, type SealedValue } from "../../../src/store/sealed.ts";
import type { Store } from "../../../src/store/store.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import type { StoreBackend, StoreUnderTest } from "../../support/store-backend.ts";
import { bytes, newTenant, newWebhooks } from "../../support/store-factory.ts";

const vault = createVault(new Uint8Array(32).fill(1));

async function all(store: Store, place: SealedPlace, limit = 2): Promise<SealedValue[]> {
  const found: SealedValue[] = [];
  for (let at: SealedRef | null = beforeAll; at !== null; ) {
    const { values, next } = await store.sealedValues(place, at, limit);
    found.push(...values);
    at = next;
  }
  return found;
}

const texts = (values: readonly SealedValue[]) => values.map(({ sealed }) => Buffer.from(sealed).toString());

/** `SealingVerbs` of `src/store/sealed.ts` as tests. */
export function sealedContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let opened: StoreUnderTest;
    let store: Store;
    const clock = createFakeClock();
    beforeEach(async () => {
      opened = await backend.open({ clock, mayGrow: () => true, vault, keys: () => "one,two" });
      store = opened.store;
    });
    afterEach(async () => {
      await store.close();
      await opened.remove();
    });

    const create = (urls: Record<string, string | null> = {}) => {
      const webhooks = Object.entries(urls).map(([url, headers]) => ({
        url,
        sealedHeaders: headers && bytes(headers),
      }));
      return store.createTenant(newTenant({ webhooks: newWebhooks(...webhooks.map(plain)) }), clock.now());
    };
    const plain = ({ url, sealedHeaders }: { url: string; sealedHeaders: Uint8Array | "" | null }) => ({
      url,
      sealedHeaders: sealedHeaders || null,
    });

    describe("sealed values", () => {
      test("are all found, in slices, each with whose it is", async () => {
        const tenants = [
          await create({ "https://a.test": "a", "https://b.test": null }),
          await create(),
          await create(),
        ];
        for (const place of ["api_key", "signing_key"] as const) {
          const found = await all(store, place);
          expect(found.map(({ owner, ownerId }) => [owner, ownerId])).toEqual(tenants.map(({ key, id }) => [key, id]));
        }
        const [first] = tenants;
        const [apiKey] = await store.apiKeys(first?.key ?? 0);
        expect((await all(store, "api_key"))[0]).toMatchObject({ id: apiKey?.id });
        expect((await all(store, "signing_secret")).map(({ id }) => id)).toEqual(["", "", ""]);
        expect(texts(await all(store, "webhook", 1))).toEqual(["a"]);
        expect(await all(store, "saved_card")).toEqual([]);
      });

      test("are replaced if they are still what they were", async () => {
        await create();
        await create();
        const [first, second] = await all(store, "signing_secret");
        if (!first || !second) throw new Error("There are two");
        const changes = [
          { ...first, was: first.sealed, sealed: bytes("new") },
          { ...second, was: bytes("something else"), sealed: bytes("lost") },
        ];
        expect(await store.reseal("signing_secret", changes)).toEqual({ replaced: 1, damaged: 0 });
        const [changed, unchanged] = await all(store, "signing_secret");
        expect(texts(changed ? [changed] : [])).toEqual(["new"]);
        expect(Buffer.from(unchanged?.sealed ?? []).equals(Buffer.from(second.sealed))).toBe(true);
        for (const place of ["api_key", "signing_key"] as const) {
          const values = await all(store, place);
          const made = values.map((value, n) => ({ ...value, was: value.sealed, sealed: bytes(`${place} ${n}`) }));
          expect(await store.reseal(place, made)).toEqual({ replaced: 2, damaged: 0 });
          expect(texts(await all(store, place))).toEqual([`${place} 0`, `${place} 1`]);
        }
      });

      test("of a webhook stay replaced when its list changes, and says nothing of headers", async () => {
        const tenant = await create({ "https://a.test": "old" });
        await store.replaceWebhooks(tenant.key, { webhooks: newWebhooks("https://a.test"), limit: 5 }, clock.now());
        const [value] = await all(store, "webhook");
        if (!value) throw new Error("There is one");
        await store.reseal("webhook", [{ ...value, was: value.sealed, sealed: bytes("new") }]);
        const renamed = newWebhooks({ url: "https://a.test", name: "renamed" });
        await store.replaceWebhooks(tenant.key, { webhooks: renamed, limit: 5 }, clock.now());
        expect(texts(await all(store, "webhook"))).toEqual(["new"]);
      });

      test("have a check beside them, which is replaced by comparing, and everyone is told", async () => {
        const told: Change[] = [];
        store.onChange((change) => void told.push(change));
        const before = await store.keyCheck();
        if (before === null) throw new Error("It is looked at");
        const one = { keyId: "one", by: "used" } as const;
        expect(await store.replaceKeyCheck(bytes("another"), bytes("lost"), one)).toEqual({ kind: "overtaken" });
        expect(Buffer.from((await store.keyCheck()) ?? []).equals(Buffer.from(before))).toBe(true);
        expect(told).toEqual([]);
        expect(await store.replaceKeyCheck(before, bytes("first"), one)).toEqual({ kind: "replaced" });
        const two = { keyId: "two", by: "known" } as const;
        expect(await store.replaceKeyCheck(bytes("first"), bytes("second"), two)).toEqual({ kind: "replaced" });
        expect(Buffer.from((await store.keyCheck()) ?? []).toString()).toBe("second");
        expect(told).toEqual([{ kind: "master_key_changed" }, { kind: "master_key_changed" }]);
      });
    });
  });
}
