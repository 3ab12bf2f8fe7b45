import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Tenant } from "../../../src/domain/tenant.ts";
import { listTag } from "../../../src/domain/webhook-list.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, newWebhooks, refusalOf, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const c = "https://c.example/hook";

/** `TenantVerbs` and `WebhookVerbs` of `src/store/store.ts` as tests. */
export function tenantsContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    describe("tenants", () => {
      test("are found by id and login e-mail as they were made", async () => {
        const made = await world.tenant({ tier: "pro", enforcedTier: null, email: "Me@x.io", loginEmail: "me@x.io" });
        expect(made).toMatchObject({ tier: "pro", enforcedTier: null, sessionVersion: 1, email: "Me@x.io" });
        expect(await world.store.findTenant(made.id)).toEqual(made);
        expect(await world.store.findTenantByLoginEmail("me@x.io")).toEqual(made);
        expect(await world.store.findTenant("t0")).toBeNull();
        expect(await world.store.findTenantByLoginEmail("Me@x.io")).toBeNull();
      });

      test("have a login e-mail each, which a deletion frees", async () => {
        const first = await world.tenant({ loginEmail: "me@x.io" });
        expect(await refusalOf(world.tenant({ loginEmail: "me@x.io" }))).toBe("invalid email_taken");
        await world.store.deleteTenant(first.key, world.clock.now());
        expect(await refusalOf(world.tenant({ loginEmail: "me@x.io" }))).toBe("fulfilled");
      });

      test("are listed newest first, without deleted ones", async () => {
        const [first, second, third] = [await world.tenant(), await world.tenant(), await world.tenant()];
        await world.store.deleteTenant(second.key, world.clock.now());
        const { tenants, total } = await world.store.listTenants({ offset: 0, limit: 10 });
        expect({ ids: tenants.map(({ id }) => id), total }).toEqual({ ids: [third.id, first.id], total: 2 });
        expect((await world.store.listTenants({ offset: 1, limit: 1 })).tenants).toEqual([first]);
      });

      test.each([
        ["id", (tenant: Tenant) => tenant.id.slice(3, 9)],
        ["name", () => "s SHOP"],
        ["e-mail address", () => "me@X"],
      ])("are found by a part of their %s, in any case", async (_, searchFor) => {
        await world.tenant();
        const tenant = await world.tenant({ name: "Ada's shop", email: "Me@x.io" });
        const found = await world.store.listTenants({ offset: 0, limit: 10, search: searchFor(tenant) });
        expect(found).toEqual({ tenants: [tenant], total: 1 });
        const nothing = await world.store.listTenants({ offset: 0, limit: 10, search: "%_" });
        expect(nothing).toEqual({ tenants: [], total: 0 });
      });

      test.each([
        ["Électricité de Łódź", "éLECTRICITÉ", "e"],
        ["Ёлка ἀγορά 𐐀", "ёЛКА ἈΓΟΡΆ 𐐨", "е"],
        ["a.b[1]*{2}^$|(?)+\\d-]", "B[1]*{2}^$|(?)+\\D-]", "x"],
        ["100 % _", "% _", "%%"],
      ])("are found by %s as it is written elsewhere", async (name, search, other) => {
        const tenant = await world.tenant({ name, email: "x@x.io" });
        const list = (text: string) => world.store.listTenants({ offset: 0, limit: 10, search: text });
        expect(await list(search)).toEqual({ tenants: [tenant], total: 1 });
        for (const char of ["\0", `${search}\0`, ".", "?", "*", "[", "^", "]", "\\", "\\w", "[a-z]", "é|É", other]) {
          const isThere = `${tenant.id} ${name} ${tenant.email}`.toLowerCase().includes(char.toLowerCase());
          expect((await list(char)).total, char).toBe(isThere ? 1 : 0);
        }
      });

      test("a new tier sets the limits and the login e-mail, and leaves the webhooks", async () => {
        const tenant = await world.tenant({ tier: "free", email: "Me@x.io", urls: [a, b] });
        expect(await world.store.setTier(tenant.key, "pro")).toMatchObject({ tier: "pro", enforcedTier: "pro" });
        expect((await world.store.findTenantByLoginEmail("me@x.io"))?.id).toBe(tenant.id);
        expect(await world.store.webhooks(tenant.key)).toHaveLength(2);
        await world.store.setTier(tenant.key, "free");
        expect(await world.store.findTenantByLoginEmail("me@x.io")).toBeNull();
        await world.tenant({ loginEmail: "me@x.io" });
        expect(await refusalOf(world.store.setTier(tenant.key, "pro"))).toBe("invalid email_taken");
      });

      test("have limits of their own, which stay with another tier", async () => {
        const { key, id } = await world.tenant({ tier: "free" });
        const limits = { ownEventsPerMonth: 50_000, ownWebhooks: 7 };
        expect(await world.store.setLimits(key, limits)).toMatchObject(limits);
        expect(await world.store.setLimits(key, { ownWebhooks: null })).toMatchObject({ ...limits, ownWebhooks: null });
        await world.store.setTier(key, "pro");
        expect(await world.store.findTenant(id)).toMatchObject({ ...limits, ownWebhooks: null, tier: "pro" });
      });

      test("each cause of a suspension ends by itself", async () => {
        const { key } = await world.tenant();
        await world.store.suspend(key, "payment", 5);
        expect(await world.store.suspend(key, "operator", 7)).toMatchObject({
          paymentSuspendedAt: 5,
          operatorSuspendedAt: 7,
        });
        expect(await world.store.resume(key, "operator")).toMatchObject({
          paymentSuspendedAt: 5,
          operatorSuspendedAt: null,
        });
      });

      test("a new password ends the sessions", async () => {
        const { key } = await world.tenant();
        expect(await world.store.setPassword(key, "new")).toMatchObject({ passwordHash: "new", sessionVersion: 2 });
        expect(await world.store.endAllSessions(key)).toMatchObject({ passwordHash: "new", sessionVersion: 3 });
      });

      test("a new e-mail is the login of a paid account, in lower case, and a free one's contact", async () => {
        const paid = await world.tenant({ tier: "pro", email: "old@x.io", loginEmail: "old@x.io" });
        const free = await world.tenant({ tier: "free" });
        expect(await world.store.changeEmail(paid.key, "New@X.io")).toMatchObject({ email: "New@X.io" });
        expect(await world.store.findTenantByLoginEmail("new@x.io")).toMatchObject({ key: paid.key });
        expect(await world.store.findTenantByLoginEmail("old@x.io")).toBeNull();
        await world.store.changeEmail(free.key, "new@x.io");
        expect(await world.store.findTenantByLoginEmail("new@x.io")).toMatchObject({ key: paid.key });
      });

      test("the login of another account cannot become one's e-mail", async () => {
        await world.tenant({ tier: "pro", email: "taken@x.io", loginEmail: "taken@x.io" });
        const { key, id } = await world.tenant({ tier: "pro", email: "own@x.io", loginEmail: "own@x.io" });
        expect(await refusalOf(world.store.changeEmail(key, "Taken@x.io"))).toBe("invalid email_taken");
        expect(await world.store.findTenant(id)).toMatchObject({ email: "own@x.io" });
      });

      test("a password is replaced while it is the one that was verified, and once", async () => {
        const { key, id } = await world.tenant();
        await world.store.setPassword(key, "verified");
        const replaced = await Promise.all(
          ["new", "newer"].map((hash) => world.store.replacePassword(key, "verified", hash)),
        );
        const [tenant, ...others] = replaced.filter((changed) => changed !== null);
        expect(others).toEqual([]);
        expect(tenant).toMatchObject({ passwordHash: expect.stringMatching(/^newe?r?$/), sessionVersion: 3 });
        expect(await world.store.findTenant(id)).toEqual(tenant ?? null);
        expect(await world.store.replacePassword(key, "verified", "newest")).toBeNull();
      });

      test("changes that arrive together see each other", async () => {
        const { key, id } = await world.tenant();
        await Promise.all([
          world.store.suspend(key, "payment", 5),
          world.store.setPassword(key, "new"),
          world.store.setTier(key, "business"),
          world.store.endAllSessions(key),
        ]);
        expect(await world.store.findTenant(id)).toMatchObject({
          paymentSuspendedAt: 5,
          passwordHash: "new",
          tier: "business",
          sessionVersion: 3,
        });
      });
    });

    describe("webhooks", () => {
      test("are kept in the order given; a URL that stays keeps its id and takes the new name", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const [, second] = await world.store.webhooks(tenant.key);
        const [forC] = newWebhooks(c);
        const [forB] = newWebhooks(b);
        if (!forB || !forC) throw new Error("two webhooks were made");
        const saved = await world.store.replaceWebhooks(
          tenant.key,
          { webhooks: [forC, { ...forB, name: "B" }], limit: 3 },
          9,
        );
        expect(saved.map(({ id, url, name }) => [id, url, name])).toEqual([
          [forC.id, c, ""],
          [second?.id ?? "", b, "B"],
        ]);
        expect(await world.store.webhooks(tenant.key)).toEqual(saved);
      });

      test("above the limit nothing changes", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const before = await world.store.webhooks(tenant.key);
        const refused = refusalOf(
          world.store.replaceWebhooks(tenant.key, { webhooks: newWebhooks(a, b), limit: 1 }, 9),
        );
        expect(await refused).toBe("invalid too_many_webhooks");
        expect(await world.store.webhooks(tenant.key)).toEqual(before);
      });

      test("are left alone when the list is not the one that was read", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const read = await world.store.webhooks(tenant.key);
        const replaceWith = (url: string, readAs: readonly string[]) =>
          world.store.replaceWebhooks(tenant.key, { webhooks: newWebhooks(url), limit: 1, readAs }, 9);
        const saved = await replaceWith(b, ["another", listTag(read)]);
        expect(await refusalOf(replaceWith(c, [listTag(read)]))).toBe("precondition_failed webhooks_changed");
        expect(await world.store.webhooks(tenant.key)).toEqual(saved);
        expect((await replaceWith(c, [listTag(saved)])).map(({ url }) => url)).toEqual([c]);
      });

      test("events that arrive with a change go to the list before it or after it, and then to the new one", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const urlsOf = async (accepted: ReturnType<typeof world.accept>) =>
          (await accepted).deliveries.map(({ url }) => url).join();
        const [before, , after] = await Promise.all([
          urlsOf(world.acceptOwned(tenant)),
          world.setUrls(tenant, b, c),
          urlsOf(world.acceptOwned(tenant)),
        ]);
        for (const urls of [before, after]) expect([a, `${b},${c}`]).toContain(urls);
        expect(await urlsOf(world.acceptOwned(tenant))).toBe(`${b},${c}`);
      });
    });
  });
}
