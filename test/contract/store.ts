import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../src/domain/delivery.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { ingestedAtMs, parseEventId } from "../../src/lib/id.ts";
import {
  bytes,
  createWorld,
  newApiKeyRow,
  newInboxDelivery,
  newReplay,
  newSigningKeyRow,
  newWebhooks,
  refusalOf,
  settlementOf,
  type TestBackend,
  type World,
} from "../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const c = "https://c.example/hook";
const dayMs = 86_400_000;

/** What a record to `a` says after an attempt that `settlementOf` has failed. */
const answered503 = { errorReason: `HTTP 503 from ${a}`, errorCode: "http_status", statusCode: 503 };

/** Tables without rows of a tenant that never had to do with payments. */
const ofNoTenant =
  /^(lane|vault_check|ended_session|billing_account|card_verification|saved_card|plan_period|invoice(_day)?|charge|sandbox_\w+)$/;

/** The text of `src/store/store.ts` as tests. A backend of the store is one that passes them. */
export function storeContract(name: string, newBackend: () => TestBackend): void {
  describe(`${name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(newBackend());
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

    describe("credentials", () => {
      test("an API key is found by its hash, with its tenant", async () => {
        const apiKey = newApiKeyRow();
        const tenant = await world.tenant({ apiKey });
        expect(await world.store.findApiKey(apiKey.hash)).toEqual({ apiKeyId: apiKey.id, tenant, expiresAt: null });
        expect(await world.store.findApiKey(new Uint8Array(32))).toBeNull();
      });

      const changes: readonly [string, (key: number) => Promise<unknown>][] = [
        ["another tier", (key) => world.store.setTier(key, "pro")],
        ["a suspension", (key) => world.store.suspend(key, "operator", 5)],
        ["the end of one", (key) => world.store.resume(key, "payment")],
        ["another e-mail", (key) => world.store.changeEmail(key, "new@x.io")],
        ["another password", (key) => world.store.setPassword(key, "new")],
        ["a replaced password", (key) => world.store.replacePassword(key, "hash", "new")],
        ["the end of its sessions", (key) => world.store.endAllSessions(key)],
        [
          "an upgrade that waits for a card",
          (key) =>
            world.store.openVerification(key, { accountId: "bill_1", token: "t" }, { tier: "pro", login: null }, 5),
        ],
      ];
      test.each(changes)(
        "an API key stands for its account after %s, as soon as that is answered",
        async (_, change) => {
          const apiKey = newApiKeyRow();
          const { key, id } = await world.tenant({ apiKey, tier: "free" });
          await world.store.suspend(key, "payment", 1);
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

      test("the latest 1,000 API keys are kept, of this account alone", async () => {
        const oldest = newApiKeyRow();
        const { key } = await world.tenant({ apiKey: oldest });
        const untouched = await world.tenant();
        const rotate = (n: number) =>
          Promise.all(Array.from({ length: n }, () => world.store.rotateApiKey(key, newApiKeyRow(), 9_000, 1_000)));
        await rotate(999);
        expect(await world.store.apiKeys(key)).toHaveLength(1_000);
        expect((await world.store.findApiKey(oldest.hash))?.apiKeyId).toBe(oldest.id);
        const [latest] = await rotate(1);
        const kept = await world.store.apiKeys(key);
        expect([kept.length, kept[0]?.id]).toEqual([1_000, latest?.id ?? ""]);
        expect(await world.store.findApiKey(oldest.hash)).toBeNull();
        expect(await world.store.apiKeys(untouched.key)).toHaveLength(1);
      });

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

      test("a signing key that would take over later than a newer one is dropped", async () => {
        const { key } = await world.tenant();
        const [first] = await world.store.signingKeys(key, 0);
        await world.store.rotateSigningKey(key, newSigningKeyRow(), world.clock.now() + 1_000, 1e15, world.clock.now());
        const third = await world.store.rotateSigningKey(
          key,
          newSigningKeyRow(),
          world.clock.now(),
          1e15,
          world.clock.now(),
        );
        const published = (await world.store.signingKeys(key, world.clock.now())).map(({ id }) => id);
        expect(published).toEqual([third.id, first?.id ?? ""]);
      });

      test("of 100 published signing keys none may be added, until one retires or if it takes a later one's place", async () => {
        const { key } = await world.tenant();
        const now = world.clock.now();
        const rotate = (retireAt: number, at = now, activatesAt = at) =>
          world.store.rotateSigningKey(key, newSigningKeyRow(), activatesAt, retireAt, at);
        await rotate(now + 5_000);
        for (let n = 2; n < 100; n++) await rotate(now + 60_000, now, now + (n === 99 ? 10_000 : 0));
        const before = await world.store.signingKeys(key, now);
        expect(before).toHaveLength(100);
        const taken = await rotate(now + 60_000);
        const after = await world.store.signingKeys(key, now);
        expect(after.map(({ id }) => id)).toEqual([taken.id, ...before.slice(1).map(({ id }) => id)]);
        await expect(rotate(now + 60_000)).rejects.toMatchObject({
          code: "too_many_signing_keys",
          retryAfterSeconds: 5,
        });
        expect(await world.store.signingKeys(key, now)).toEqual(after);
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
        expect(world.backend.countRows().signing_secret).toBe(2);
      });

      test("a session ends once, however often it is ended", async () => {
        expect(await world.store.isSessionEnded("s1")).toBe(false);
        await Promise.all([world.store.endSession("s1", 100), world.store.endSession("s1", 100)]);
        expect(await world.store.isSessionEnded("s1")).toBe(true);
        expect(await world.store.isSessionEnded("s2")).toBe(false);
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

    describe("webhooks", () => {
      test("are kept in the order given; a URL that stays keeps its id and takes the new name", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const [first, second] = await world.store.webhooks(tenant.key);
        const [forC] = newWebhooks(c);
        const [forB] = newWebhooks(b);
        if (!forB || !forC) throw new Error("two webhooks were made");
        const { saved, removed } = await world.store.replaceWebhooks(tenant.key, [forC, { ...forB, name: "B" }], 3, 9);
        expect(removed).toEqual([first?.key ?? 0]);
        expect(saved.map(({ id, url, name }) => [id, url, name])).toEqual([
          [forC.id, c, ""],
          [second?.id ?? "", b, "B"],
        ]);
        expect(await world.store.webhooks(tenant.key)).toEqual(saved);
      });

      test("above the limit nothing changes", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const before = await world.store.webhooks(tenant.key);
        const refused = refusalOf(world.store.replaceWebhooks(tenant.key, newWebhooks(a, b), 1, 9));
        expect(await refused).toBe("invalid too_many_webhooks");
        expect(await world.store.webhooks(tenant.key)).toEqual(before);
      });

      test("events that arrive with a change go to the list before it or after it, and then to the new one", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const urlsOf = async (accepted: ReturnType<typeof world.accept>) =>
          (await accepted).deliveries.map(({ url }) => url).join();
        const [before, , after] = await Promise.all([
          urlsOf(world.accept(tenant)),
          world.setUrls(tenant, b, c),
          urlsOf(world.accept(tenant)),
        ]);
        for (const urls of [before, after]) expect([a, `${b},${c}`]).toContain(urls);
        expect(await urlsOf(world.accept(tenant))).toBe(`${b},${c}`);
      });
    });

    describe("acceptEvents", () => {
      test("makes a delivery for each webhook, in their order, with the very bytes", async () => {
        const tenant = await world.tenant({ urls: [b, a] });
        const payload = bytes('{ "n": 1.0, "ü": 12345678901234567890 }');
        const { eventIds, deliveries, repeated, ingestedAt } = await world.accept(tenant, { payloads: [payload] });
        expect({ repeated, ingestedAt }).toEqual({ repeated: false, ingestedAt: world.clock.now() });
        expect(deliveries.map(({ url }) => url)).toEqual([b, a]);
        expect(await world.due(tenant)).toEqual(
          deliveries.map((delivery) => ({ ...delivery, payload: expect.anything() })),
        );
        const records = await world.recordsOf(tenant.key, eventIds[0] ?? "");
        expect(records).toEqual(
          [b, a].map((targetWebhook) => ({
            eventId: eventIds[0] ?? "",
            state: "PENDING",
            ingestedAt: world.clock.now(),
            targetWebhook,
            errorReason: null,
            errorCode: null,
            statusCode: null,
            payload: expect.anything(),
            attempts: 0,
            attemptsForgotten: 0,
            lastAttemptAt: null,
            nextAttemptAt: world.clock.now(),
            replayGroupId: null,
          })),
        );
        for (const record of records ?? []) expect(Buffer.from(record.payload ?? []).equals(payload)).toBe(true);
      });

      test("stores nothing, and remembers nothing, of a request that nobody waits for any more", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const idempotency = { key: "abandoned", fingerprint: bytes("x") };
        await expect(world.accept(tenant, { idempotency, isAbandoned: () => true })).rejects.toMatchObject({
          code: "request_abandoned",
        });
        expect(await world.due(tenant)).toEqual([]);
        const { repeated } = await world.accept(tenant, { idempotency, isAbandoned: () => false });
        expect(repeated).toBe(false);
      });

      test("without a webhook makes one failed record", async () => {
        const tenant = await world.tenant();
        const { eventIds, deliveries } = await world.accept(tenant);
        expect(deliveries).toEqual([]);
        expect(await world.recordsOf(tenant.key, eventIds[0] ?? "")).toMatchObject([
          {
            state: "FAILED",
            targetWebhook: "",
            errorReason: "No webhook was registered when the event arrived",
            errorCode: "no_webhook",
            statusCode: null,
          },
        ]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 1 });
      });

      test("gives ids that grow, within a batch, between tenants, when the clock steps back and after a restart", async () => {
        const [one, two] = [await world.tenant({ urls: [a] }), await world.tenant()];
        const ids = [...(await world.acceptMany(one, 5_000)), ...(await world.acceptMany(two, 3))];
        world.clock.advance(-3_600_000);
        ids.push(...(await world.acceptMany(one, 2)));
        await world.reopen();
        ids.push(...(await world.acceptMany(one, 2)));
        world.clock.advance(7_200_000);
        ids.push(...(await world.acceptMany(one, 2)));
        expect(ids.toSorted()).toEqual(ids);
        expect(new Set(ids).size).toBe(ids.length);
        const last = parseEventId(ids.at(-1) ?? "");
        expect(last && ingestedAtMs(last.seq)).toBe(world.clock.now());
      });

      test("is due at once also when the clock has stepped back", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.accept(tenant);
        world.clock.advance(-3_600_000);
        const { ingestedAt } = await world.accept(tenant);
        expect(ingestedAt).toBe(world.clock.now() + 3_600_000);
        expect(await world.due(tenant)).toHaveLength(1);
      });

      test("counts to the month's quota and no further, a batch whole or not at all", async () => {
        const tenant = await world.tenant({ tier: "free" });
        await world.acceptMany(tenant, 9_999);
        const two = { payloads: [bytes("{}"), bytes("{}")] };
        expect(await refusalOf(world.accept(tenant, two))).toBe("rate_limited quota_exceeded");
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 9_999 });
        await world.accept(tenant);
        expect(await refusalOf(world.accept(tenant))).toBe("rate_limited quota_exceeded");
        await world.store.setTier(tenant.key, "pro");
        expect(await refusalOf(world.accept(tenant))).toBe("fulfilled");
        expect((await world.page(tenant, { size: 1 })).total).toBe(10_001);
      });

      test("says when the quota begins anew, and then it does, in UTC", async () => {
        const tenant = await world.tenant({ tier: "free" });
        await world.acceptMany(tenant, 10_000);
        const monthEnd = Date.UTC(2026, 3, 1);
        world.clock.advance(monthEnd - 1_500 - world.clock.now());
        const refused = await world.accept(tenant).catch((error: { retryAfterSeconds: number }) => error);
        expect(refused).toMatchObject({ retryAfterSeconds: 2 });
        world.clock.advance(1_500);
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 0 });
        expect(await refusalOf(world.accept(tenant))).toBe("fulfilled");
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 1 });
      });

      test("a clock that steps back over the end of a month does not open the earlier month again", async () => {
        const tenant = await world.tenant({ tier: "free" });
        world.clock.advance(Date.UTC(2026, 3, 1) - world.clock.now());
        await world.acceptMany(tenant, 10_000);
        world.clock.advance(-1);
        expect(await refusalOf(world.accept(tenant))).toBe("rate_limited quota_exceeded");
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 10_000 });
      });

      test("and then the quota begins anew after the month in which events count", async () => {
        const tenant = await world.tenant({ tier: "free" });
        world.clock.advance(Date.UTC(2026, 3, 1) - world.clock.now());
        await world.acceptMany(tenant, 10_000);
        world.clock.advance(-1_000);
        const refused = await world.accept(tenant).catch((error: { retryAfterSeconds: number }) => error);
        expect(refused).toMatchObject({ retryAfterSeconds: 30 * 24 * 3_600 + 1 });
      });

      test("events that arrive together share the quota", async () => {
        const tenant = await world.tenant({ tier: "free" });
        await world.acceptMany(tenant, 9_998);
        const outcomes = await Promise.all(Array.from({ length: 5 }, () => refusalOf(world.accept(tenant))));
        expect(outcomes.filter((outcome) => outcome === "fulfilled")).toHaveLength(2);
      });

      const standings: readonly [string, Parameters<World["tenant"]>[0], "payment" | "operator" | null, string][] = [
        ["an unverified card", { tier: "pro", enforcedTier: null }, null, "payment_required card_not_verified"],
        ["a suspension for payment", {}, "payment", "payment_required account_suspended"],
        ["a suspension by the operator", {}, "operator", "forbidden account_suspended"],
      ];
      test.each(standings)("%s is said before the quota", async (_, given, cause, refusal) => {
        const tenant = await world.tenant({ tier: "free", ...given });
        if (tenant.enforcedTier) await world.acceptMany(tenant, 10_000);
        if (cause) await world.store.suspend(tenant.key, cause, world.clock.now());
        expect(await refusalOf(world.accept(tenant))).toBe(refusal);
      });

      test("a disk below its floor is the last thing said", async () => {
        const tenant = await world.tenant({ tier: "free" });
        await world.acceptMany(tenant, 9_999);
        world.growth.isAllowed = false;
        expect(await refusalOf(world.accept(tenant))).toBe("unavailable storage_full");
        world.growth.isAllowed = true;
        await world.accept(tenant);
        world.growth.isAllowed = false;
        expect(await refusalOf(world.accept(tenant))).toBe("rate_limited quota_exceeded");
      });

      test("of a deleted tenant is refused; what arrives with the deletion is accepted whole or refused", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const [before, , after] = await Promise.all([
          refusalOf(world.accept(tenant)),
          world.store.deleteTenant(tenant.key, world.clock.now()),
          refusalOf(world.accept(tenant)),
        ]);
        for (const outcome of [before, after]) expect(["fulfilled", "unauthenticated account_gone"]).toContain(outcome);
        expect(await refusalOf(world.accept(tenant))).toBe("unauthenticated account_gone");
        while (await world.store.eraseDeleted(100));
        expect(await refusalOf(world.accept(tenant))).toBe("unauthenticated account_gone");
      });
    });

    describe("an idempotency key", () => {
      const idempotency = { key: "k1", fingerprint: bytes("one") };

      test("met again gives the first answer, also when both arrive at once", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const payloads = [bytes("1"), bytes("2")];
        const together = await Promise.all([
          world.accept(tenant, { payloads, idempotency }),
          world.accept(tenant, { payloads, idempotency }),
        ]);
        world.clock.advance(dayMs - 1);
        const third = await world.accept(tenant, { payloads, idempotency });
        const [first, ...others] = together.filter(({ repeated }) => !repeated);
        expect([first?.eventIds.length, others]).toEqual([2, []]);
        const again = [...together.filter(({ repeated }) => repeated), third];
        expect<object[]>(again).toEqual([0, 0].map(() => ({ ...first, repeated: true, deliveries: [] })));
        expect((await world.page(tenant)).total).toBe(2);
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 2 });
      });

      test("with another request is refused", async () => {
        const tenant = await world.tenant();
        await world.accept(tenant, { idempotency });
        const other = world.accept(tenant, { idempotency: { ...idempotency, fingerprint: bytes("two") } });
        expect(await refusalOf(other)).toBe("idempotency_conflict idempotency_key_reused");
      });

      test("is new again after 24 hours, and each tenant has its own", async () => {
        const tenant = await world.tenant();
        await world.accept(tenant, { idempotency });
        expect(await world.accept(await world.tenant(), { idempotency })).toMatchObject({ repeated: false });
        world.clock.advance(dayMs);
        const other = { ...idempotency, fingerprint: bytes("two") };
        expect(await world.accept(tenant, { idempotency: other })).toMatchObject({ repeated: false });
        expect(await world.accept(tenant, { idempotency: other })).toMatchObject({ repeated: true });
      });

      test("remembers no refusal, and answers before the account's standing is asked", async () => {
        const tenant = await world.tenant();
        await world.store.suspend(tenant.key, "payment", 1);
        expect(await refusalOf(world.accept(tenant, { idempotency }))).toBe("payment_required account_suspended");
        await world.store.resume(tenant.key, "payment");
        expect(await world.accept(tenant, { idempotency })).toMatchObject({ repeated: false });
        await world.store.suspend(tenant.key, "payment", 1);
        expect(await world.accept(tenant, { idempotency })).toMatchObject({ repeated: true });
      });
    });

    describe("page", () => {
      test("shows the newest event first, and the records of one event in the order of the webhooks", async () => {
        const tenant = await world.tenant({ urls: [b, a] });
        await world.accept(await world.tenant({ urls: [c] }));
        const ids = await world.acceptMany(tenant, 3);
        const { records, ...counts } = await world.page(tenant);
        expect(counts).toEqual({ total: 6, totalIsExact: true, totalEvents: 3 });
        expect(records.map(({ eventId, targetWebhook }) => [eventId, targetWebhook])).toEqual(
          ids.toReversed().flatMap((id) => [
            [id, b],
            [id, a],
          ]),
        );
      });

      test("counts all events of the account beside all of its records, and not beside a part of them", async () => {
        const tenant = await world.tenant({ urls: [b, a] });
        expect((await world.page(tenant)).totalEvents).toBe(0);
        await world.acceptMany(tenant, 3);
        expect((await world.page(tenant, { page: 9 })).totalEvents).toBe(3);
        expect((await world.page(tenant, { state: "PENDING" })).totalEvents).toBeUndefined();
        expect((await world.page(tenant, { from: 0 })).totalEvents).toBeUndefined();
      });

      test("cuts anywhere, and is empty behind the end", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        await world.acceptMany(tenant, 5);
        const all = (await world.page(tenant)).records;
        const cut = await Promise.all([0, 1, 2, 3, 4].map((page) => world.page(tenant, { page, size: 3 })));
        expect(cut.flatMap(({ records }) => records)).toEqual(all);
        expect(cut.map(({ total }) => total)).toEqual([10, 10, 10, 10, 10]);
        expect((await world.page(tenant, { page: 1e9, size: 1000 })).records).toEqual([]);
      });

      test("by state is the list without the others", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        for (const outcome of ["delivered", "failed", "retry"] as const) await world.event(tenant, outcome, "failed");
        const all = (await world.page(tenant)).records;
        for (const state of ["PENDING", "DELIVERED", "FAILED"] as const) {
          expect((await world.page(tenant, { state })).records).toEqual(all.filter((record) => record.state === state));
        }
        const cut = await Promise.all(
          [0, 1, 2, 3].map((page) => world.page(tenant, { page, size: 1, state: "FAILED" })),
        );
        expect(cut.flatMap(({ records }) => records)).toEqual(all.filter(({ state }) => state === "FAILED"));
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 1, FAILED: 4 });
      });

      test("filters by webhook, also a removed one, and by times, both inclusive", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const [removed] = await world.store.webhooks(tenant.key);
        const start = world.clock.now();
        for (let i = 0; i < 4; i++) {
          if (i === 2) await world.setUrls(tenant, b);
          await world.accept(tenant);
          world.clock.advance(1_000);
        }
        const total = async (given: Parameters<World["page"]>[1]) => {
          const page = await world.page(tenant, given);
          expect(page.records).toHaveLength(page.total);
          return page.total;
        };
        expect(await total({ webhookId: removed?.id ?? "" })).toBe(2);
        expect(await total({ webhookId: "wh_none" })).toBe(0);
        expect(await total({ from: start + 1_000 })).toBe(4);
        expect(await total({ from: start + 1_000, to: start + 2_000 })).toBe(3);
        expect(await total({ to: start + 2_999 })).toBe(5);
        expect(await total({ from: start, to: start, webhookId: removed?.id ?? "", state: "PENDING" })).toBe(1);
        expect(await total({ from: start, to: start, state: "FAILED" })).toBe(0);
        const stranger = await world.tenant();
        expect((await world.page(stranger, { webhookId: removed?.id ?? "" })).total).toBe(0);
      });

      test("without payloads is the same list, on the first pages, deep ones and with a filter", async () => {
        const tenant = await world.tenant();
        await world.acceptMany(tenant, 2_100);
        const from = world.clock.now();
        for (const given of [
          { size: 5 },
          { size: 5, state: "FAILED" as const },
          { page: 419, size: 5 },
          { from, size: 5 },
        ]) {
          const whole = await world.page(tenant, given);
          expect(whole.records.map(({ payload }) => payload?.length)).toEqual([2, 2, 2, 2, 2]);
          const lean = await world.page(tenant, { ...given, withPayload: false });
          expect(lean).toEqual({ ...whole, records: whole.records.map((record) => ({ ...record, payload: null })) });
        }
      });

      test("counts a filtered list exactly up to 10,000; pages lie as deep as the list", async () => {
        const tenant = await world.tenant();
        const ids = await world.acceptMany(tenant, 10_000);
        const from = world.clock.now();
        expect(await world.page(tenant, { from, size: 1 })).toMatchObject({ total: 10_000, totalIsExact: true });
        const [newest = ""] = await world.acceptMany(tenant, 1);
        expect(await world.page(tenant, { from, size: 1 })).toMatchObject({ total: 10_000, totalIsExact: false });
        expect(await world.page(tenant, { size: 1 })).toMatchObject({ total: 10_001, totalIsExact: true });
        const newestFirst = [newest, ...ids.toReversed()];
        for (const given of [{}, { state: "FAILED" as const }, { from }]) {
          for (const page of [49, 60, 99]) {
            const deep = await world.page(tenant, { page, size: 100, ...given });
            const ids = deep.records.map(({ eventId }) => eventId);
            expect(ids).toEqual(newestFirst.slice(page * 100, (page + 1) * 100));
          }
        }
      });
    });

    describe("one event", () => {
      test("is its tenant's alone", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const stranger = await world.tenant();
        const id = await world.event(tenant, "failed");
        expect(await world.recordsOf(stranger.key, id)).toBeNull();
        expect(await world.attemptsOf(stranger.key, id)).toBeNull();
        expect(await world.store.previewDelivery(stranger.key, id)).toBeNull();
        expect(await world.store.eventOwner(id)).toBe(tenant.key);
        const neighbour = `${id.slice(0, -1)}${id.endsWith("0") ? "1" : "0"}`;
        for (const unknown of [neighbour, id.toUpperCase(), "evt_", ""]) {
          expect(await world.recordsOf(tenant.key, unknown)).toBeNull();
          expect(await world.attemptsOf(tenant.key, unknown)).toBeNull();
          expect(await world.store.eventOwner(unknown)).toBeNull();
        }
        await world.store.deleteTenant(tenant.key, 1);
        expect(await world.store.eventOwner(id)).toBeNull();
      });

      test("has its attempts in order, with a body that may come later", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        expect(await world.attemptsOf(tenant.key, delivery.eventId)).toEqual([]);
        await world.settle(delivery, "retry");
        world.clock.advance(60_000);
        const [second] = await world.due(tenant);
        if (!second) throw new Error("the retry is due");
        const { attemptKey } = await world.settle(second, "delivered");
        await world.store.completeResponseBody(attemptKey ?? 0, bytes("the whole answer"));
        const at = world.clock.now();
        const common = { targetWebhook: a, durationMs: 12, replayGroupId: null, isReplayGroupIdCut: false };
        expect(await world.attemptsOf(tenant.key, delivery.eventId)).toEqual([
          {
            ...common,
            number: 1,
            startedAt: at - 60_000,
            statusCode: 503,
            error: `HTTP 503 from ${a}`,
            errorCode: "http_status",
            responseBody: "answer",
          },
          {
            ...common,
            number: 2,
            startedAt: at,
            statusCode: 204,
            error: null,
            errorCode: null,
            responseBody: "the whole answer",
          },
        ]);
      });

      test("is previewed as its newest record would be delivered", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const { eventIds, deliveries } = await world.accept(tenant);
        const preview = await world.store.previewDelivery(tenant.key, eventIds[0] ?? "");
        expect(preview).toMatchObject({
          eventId: eventIds[0],
          tenantId: tenant.id,
          url: b,
          payload: expect.anything(),
        });
        expect(preview?.deliveryKey).toBe(deliveries[1]?.deliveryKey ?? 0);
      });
    });

    describe("settle", () => {
      test("delivered", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        await world.settle(delivery, "retry");
        world.clock.advance(60_000);
        const [again] = await world.due(tenant);
        expect(again).toMatchObject({ attempts: 1, attemptsInRun: 1, run: 1 });
        expect(again && (await world.settle(again, "delivered"))).toMatchObject({ kind: "settled" });
        expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([
          {
            ...{ state: "DELIVERED", errorReason: null, errorCode: null, statusCode: null },
            ...{ attempts: 2, lastAttemptAt: world.clock.now(), nextAttemptAt: null },
          },
        ]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 0 });
      });

      test("failed", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        expect(await world.recordsOf(tenant.key, id)).toMatchObject([
          { state: "FAILED", ...answered503, attempts: 1, nextAttemptAt: null },
        ]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 1 });
      });

      test("retry leaves the record pending until its time", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "retry");
        const at = world.clock.now() + 60_000;
        expect(await world.recordsOf(tenant.key, id)).toMatchObject([
          { state: "PENDING", ...answered503, attempts: 1, nextAttemptAt: at },
        ]);
        expect(await world.due(tenant)).toEqual([]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 0, FAILED: 0 });
      });

      test("of an overtaken run goes to the log only, and the numbers go on", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        await world.replayEvent(tenant, delivery.eventId);
        const [newer] = await world.due(tenant);
        expect(newer).toMatchObject({ run: 2, attemptsInRun: 0 });
        expect(await world.settle(delivery, "failed")).toMatchObject({ kind: "superseded" });
        expect(await world.records(tenant, delivery.eventId)).toEqual([`PENDING ${a}`]);
        expect(newer && (await world.settle(newer, "delivered"))).toMatchObject({ kind: "settled" });
        expect(await world.settle(delivery, "delivered")).toMatchObject({ kind: "superseded" });
        const attempts = await world.attemptsOf(tenant.key, delivery.eventId);
        expect(attempts?.map(({ number, replayGroupId }) => [number, replayGroupId])).toEqual([
          [1, null],
          [2, "the single replay"],
          [3, null],
        ]);
        expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([{ attempts: 3 }]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 0 });
      });

      test("of a record that a replay has replaced is gone, but logged", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        await world.setUrls(tenant, b);
        await world.store.failDeliveriesOfRemoved(100);
        await world.replayEvent(tenant, delivery.eventId);
        const settled = await world.settle(delivery, "delivered");
        expect(settled).toMatchObject({ kind: "gone", attemptKey: expect.any(Number) });
        expect(await world.records(tenant, delivery.eventId)).toEqual([`PENDING ${b}`]);
        expect(await world.attemptsOf(tenant.key, delivery.eventId)).toMatchObject([{ targetWebhook: a, number: 1 }]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 0, FAILED: 0 });
      });

      test("to a URL that was registered again meanwhile is counted by the record that goes on", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        await world.setUrls(tenant);
        await world.store.failDeliveriesOfRemoved(100);
        await world.setUrls(tenant, a);
        await world.replayEvent(tenant, delivery.eventId);
        const [newer] = await world.due(tenant);
        if (newer) await world.settle(newer, "retry");
        await world.settle(delivery, "delivered");
        world.clock.advance(60_000);
        const [again] = await world.due(tenant);
        if (again) await world.settle(again, "delivered");
        const attempts = await world.attemptsOf(tenant.key, delivery.eventId);
        expect(attempts?.map(({ number }) => number)).toEqual([1, 2, 3]);
        expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([{ attempts: 3 }]);
      });

      test("of a deleted tenant is gone and logs nothing, before its rows are erased and after", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const other = await world.tenant({ urls: [a] });
        const [delivery, neighbour] = [await world.delivery(tenant), await world.delivery(other)];
        const { attemptKey } = await world.settle(delivery, "retry");
        await world.store.deleteTenant(tenant.key, world.clock.now());
        const gone = { kind: "gone", attemptKey: null } as const;
        expect(await world.settle(delivery, "delivered")).toEqual(gone);
        while (await world.store.eraseDeleted(100));
        const [settled, late] = await Promise.all([
          world.settle(neighbour, "delivered"),
          world.settle(delivery, "delivered"),
        ]);
        expect(late).toEqual(gone);
        expect(settled.kind).toBe("settled");
        // The body of the erased attempt must not reach the attempt that came after it.
        await world.store.completeResponseBody(attemptKey ?? 0, bytes("of another tenant"));
        expect(await world.attemptsOf(other.key, neighbour.eventId)).toMatchObject([{ responseBody: "answer" }]);
      });
    });

    describe("the queue", () => {
      test("has a lane for each webhook with pending deliveries, whenever they are due", async () => {
        const tenant = await world.tenant({ urls: [a, b, c] });
        const [forA, forB, forC] = (await world.store.webhooks(tenant.key)).map(({ key }) => key);
        const start = world.clock.now();
        await world.event(tenant, "retry", "delivered", "delivered");
        expect(await world.store.dueLanes()).toEqual([
          { webhookKey: forA ?? 0, tenantKey: tenant.key, firstDueAt: start + 60_000 },
        ]);
        world.clock.advance(10);
        await world.event(tenant, "failed");
        expect(await world.store.dueLanes()).toEqual([
          { webhookKey: forA ?? 0, tenantKey: tenant.key, firstDueAt: start + 60_000 },
          { webhookKey: forB ?? 0, tenantKey: tenant.key, firstDueAt: start + 10 },
          { webhookKey: forC ?? 0, tenantKey: tenant.key, firstDueAt: start + 10 },
        ]);
        await world.setUrls(tenant, a, c);
        expect((await world.store.dueLanes()).map(({ webhookKey }) => webhookKey)).toEqual([forA ?? 0, forC ?? 0]);
        await world.store.deleteTenant(tenant.key, 1);
        expect(await world.store.dueLanes()).toEqual([]);
      });

      test("gives the longest waiting first, so many, and when the next is due", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const [webhook] = await world.store.webhooks(tenant.key);
        const start = world.clock.now();
        const due = (limit: number, now = world.clock.now()) =>
          world.store.dueDeliveries(webhook?.key ?? 0, now, limit);
        expect(await due(10)).toEqual({ due: [], nextDueAt: null });
        const retried = await world.event(tenant, "retry");
        expect(await due(10)).toEqual({ due: [], nextDueAt: start + 60_000 });
        world.clock.advance(120_000);
        const ids = await world.acceptMany(tenant, 2);
        const found = await due(10);
        expect(found.due.map(({ eventId }) => eventId)).toEqual([retried, ...ids]);
        expect(found.nextDueAt).toBeNull();
        expect((await due(2)).due).toHaveLength(2);
        expect((await due(2)).nextDueAt).toBe(world.clock.now());
        expect(await due(10, start + 70_000)).toMatchObject({
          due: [{ eventId: retried }],
          nextDueAt: start + 120_000,
        });
        expect(await world.store.queueDepth()).toEqual({ pending: 3, oldestDueAt: start + 60_000 });
      });

      test("pauses for a suspension by the operator, not for one for payment", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.accept(tenant);
        await world.store.suspend(tenant.key, "payment", 1);
        expect(await world.due(tenant)).toHaveLength(1);
        await world.store.suspend(tenant.key, "operator", 1);
        expect(await world.due(tenant)).toEqual([]);
        expect(await world.store.dueLanes()).toHaveLength(1);
        expect(await world.store.queueDepth()).toEqual({ pending: 0, oldestDueAt: null });
        await world.store.resume(tenant.key, "operator");
        expect(await world.due(tenant)).toHaveLength(1);
      });

      test("of a deleted tenant is empty", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const { webhookKey } = await world.delivery(tenant);
        await world.store.deleteTenant(tenant.key, 1);
        const empty = { due: [], nextDueAt: null };
        expect(await world.store.dueDeliveries(webhookKey, world.clock.now(), 10)).toEqual(empty);
        expect(await world.store.queueDepth()).toEqual({ pending: 0, oldestDueAt: null });
      });
    });

    describe("a removed webhook", () => {
      const reason = "The webhook was removed before the delivery succeeded";
      const removed = { errorReason: reason, errorCode: "webhook_removed", statusCode: null };
      const succeeded = { errorReason: null, errorCode: null, statusCode: null };

      test("gives out nothing from then on, and its records fail in batches", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        await world.acceptMany(tenant, 5);
        await world.setUrls(tenant, b);
        expect((await world.due(tenant)).map(({ url }) => url)).toEqual([b, b, b, b, b]);
        expect(await world.store.failDeliveriesOfRemoved(3)).toBe(true);
        expect(await world.totals(tenant)).toEqual({ PENDING: 7, DELIVERED: 0, FAILED: 3 });
        expect(await world.store.failDeliveriesOfRemoved(3)).toBe(false);
        expect(await world.totals(tenant)).toEqual({ PENDING: 5, DELIVERED: 0, FAILED: 5 });
        expect(await world.store.failDeliveriesOfRemoved(3)).toBe(false);
        const { records } = await world.page(tenant, { state: "FAILED" });
        for (const record of records) expect(record).toMatchObject({ targetWebhook: a, ...removed });
      });

      test("does not come back to life with its URL", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const [before] = await world.store.webhooks(tenant.key);
        await world.accept(tenant);
        await world.setUrls(tenant);
        await world.setUrls(tenant, a);
        const [after] = await world.store.webhooks(tenant.key);
        expect(after?.key).not.toBe(before?.key);
        expect(await world.due(tenant)).toEqual([]);
        while (await world.store.failDeliveriesOfRemoved(10));
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 1 });
      });

      const late: readonly [Parameters<World["settle"]>[1], boolean, string, object][] = [
        ["delivered", false, "DELIVERED", succeeded],
        ["delivered", true, "DELIVERED", succeeded],
        ["failed", false, "FAILED", answered503],
        ["failed", true, "FAILED", answered503],
        ["retry", false, "FAILED", removed],
        ["retry", true, "FAILED", removed],
      ];
      test.each(late)(
        "an attempt under way that ends %s (record failed before: %p) makes it %s",
        async (outcome, drained, state, why) => {
          const tenant = await world.tenant({ urls: [a] });
          const delivery = await world.delivery(tenant);
          await world.setUrls(tenant);
          if (drained) await world.store.failDeliveriesOfRemoved(10);
          expect(await world.settle(delivery, outcome)).toMatchObject({ kind: "settled" });
          expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([{ state, ...why, attempts: 1 }]);
          const { [state as "FAILED"]: counted } = await world.totals(tenant);
          expect(counted).toBe(1);
        },
      );

      test("its replay ends with the failures, and is corrected by a late success", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        const { replay } = await world.replayEvent(tenant, id);
        const [delivery] = await world.due(tenant);
        await world.setUrls(tenant);
        await world.store.failDeliveriesOfRemoved(10);
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", failed: 1, delivered: 0 });
        if (delivery) await world.settle(delivery, "delivered");
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", failed: 0, delivered: 1 });
      });
    });

    describe("a replay of one event", () => {
      test("starts a new run at once, of whatever state", async () => {
        const tenant = await world.tenant({ urls: [a, b, c] });
        const id = await world.event(tenant, "delivered", "failed", "retry");
        const { replay, webhookKeys } = await world.replayEvent(tenant, id);
        expect(webhookKeys).toEqual((await world.store.webhooks(tenant.key)).map(({ key }) => key));
        expect(replay).toMatchObject({ kind: "single", status: "running", selected: 1, queued: 3, skipped: 0 });
        const due = await world.due(tenant);
        expect(
          due.map(({ url, run, attempts, attemptsInRun, replayGroupId }) => [
            url,
            run,
            attempts,
            attemptsInRun,
            replayGroupId,
          ]),
        ).toEqual([a, b, c].map((url) => [url, 2, 1, 0, "the single replay"]));
        expect(await world.totals(tenant)).toEqual({ PENDING: 3, DELIVERED: 0, FAILED: 0 });
        for (const delivery of due) await world.settle(delivery, delivery.url === b ? "failed" : "delivered");
        expect(await world.replay(tenant, replay.id)).toMatchObject({
          status: "completed",
          delivered: 2,
          failed: 1,
          completedAt: world.clock.now(),
        });
        const records = await world.recordsOf(tenant.key, id);
        expect(records?.map(({ attempts, replayGroupId }) => [attempts, replayGroupId])).toEqual(
          [0, 0, 0].map(() => [2, "the single replay"]),
        );
      });

      test("overtakes an earlier one", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        const first = (await world.replayEvent(tenant, id)).replay;
        const [overtaken] = await world.due(tenant);
        const second = (await world.replayEvent(tenant, id)).replay;
        expect(await world.replay(tenant, first.id)).toMatchObject({ status: "completed", superseded: 1 });
        if (overtaken) await world.settle(overtaken, "delivered");
        expect(await world.replay(tenant, first.id)).toMatchObject({ superseded: 1, delivered: 0 });
        expect(await world.replay(tenant, second.id)).toMatchObject({ status: "running", queued: 1 });
      });

      test("replaces the record of an event that found no webhook", async () => {
        const tenant = await world.tenant();
        const id = await world.event(tenant);
        const { replay } = await world.replayEvent(tenant, id);
        expect(replay).toMatchObject({ status: "completed", queued: 0, skipped: 1 });
        expect(await world.records(tenant, id)).toEqual(["FAILED"]);
        await world.setUrls(tenant, a, b);
        expect((await world.replayEvent(tenant, id)).replay).toMatchObject({ queued: 2, skipped: 0 });
        expect(await world.records(tenant, id)).toEqual([`PENDING ${a}`, `PENDING ${b}`]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 2, DELIVERED: 0, FAILED: 0 });
      });

      test("replaces a failed record of a URL that is gone; its attempts stay in the log", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const id = await world.event(tenant, "failed", "delivered");
        await world.setUrls(tenant, b);
        expect((await world.replayEvent(tenant, id)).replay).toMatchObject({ queued: 1, skipped: 1 });
        expect(await world.records(tenant, id)).toEqual([`FAILED ${a}`, `PENDING ${b}`]);
        await world.setUrls(tenant, b, c);
        expect((await world.replayEvent(tenant, id)).replay).toMatchObject({ queued: 2, skipped: 0 });
        expect(await world.records(tenant, id)).toEqual([`PENDING ${b}`, `PENDING ${c}`]);
        expect((await world.attemptsOf(tenant.key, id))?.map(({ targetWebhook }) => targetWebhook)).toEqual([a, b]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 2, DELIVERED: 0, FAILED: 0 });
      });

      test("leaves a delivered record of a URL that is gone", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "delivered");
        await world.setUrls(tenant, b);
        await world.replayEvent(tenant, id);
        expect(await world.records(tenant, id)).toEqual([`DELIVERED ${a}`, `PENDING ${b}`]);
      });

      test("goes on counting the attempts of a URL that was registered again", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        await world.setUrls(tenant);
        await world.setUrls(tenant, a);
        await world.replayEvent(tenant, id);
        const [delivery] = await world.due(tenant);
        if (delivery) await world.settle(delivery, "delivered");
        const attempts = await world.attemptsOf(tenant.key, id);
        expect(attempts?.map(({ number }) => number)).toEqual([1, 2]);
      });

      test("of an event that is not there is refused", async () => {
        const tenant = await world.tenant();
        const id = await world.event(await world.tenant());
        expect(await refusalOf(world.replayEvent(tenant, id))).toBe("not_found event_not_found");
        expect(await refusalOf(world.replayEvent(tenant, "evt_x"))).toBe("not_found event_not_found");
        expect((await world.replaysOf(tenant.key, { offset: 0, limit: 10 })).total).toBe(0);
      });
    });

    describe("a bulk replay", () => {
      const settleAll = async (tenant: Tenant) => {
        for (const delivery of await world.due(tenant)) await world.settle(delivery, "delivered");
      };

      test("of all takes every event that was there when it was asked for", async () => {
        const tenant = await world.tenant({ urls: [a] });
        for (const outcome of ["delivered", "failed", "retry"] as const) await world.event(tenant, outcome);
        const replay = await world.startReplay(tenant, "all");
        expect(replay).toMatchObject({ status: "waiting", selected: 3, queued: 0, createdAt: world.clock.now() });
        const later = await world.event(tenant, "failed");
        expect(await world.queueAll(2)).toMatchObject([
          { status: "running", queued: 2 },
          { status: "running", queued: 3 },
        ]);
        expect(await world.records(tenant, later)).toEqual([`FAILED ${a}`]);
        await settleAll(tenant);
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", delivered: 3 });
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 3, FAILED: 1 });
      });

      test("of a timeline takes the events between two times, both inclusive", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const start = world.clock.now();
        for (let i = 0; i < 5; i++) {
          await world.event(tenant, "delivered");
          world.clock.advance(1_000);
        }
        const range = { from: start + 1_000, to: start + 3_000 };
        expect(await world.store.previewReplay(tenant.key, { kind: "timeline", ...range })).toBe(3);
        expect(await world.startReplay(tenant, "timeline", range)).toMatchObject({ selected: 3 });
        await world.queueAll();
        const pending = (await world.page(tenant, { state: "PENDING" })).records;
        expect(pending.map(({ ingestedAt }) => ingestedAt - start)).toEqual([3_000, 2_000, 1_000]);
      });

      test("of what failed takes events with a failed record, to those that have not acknowledged them", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        await world.event(tenant, "delivered", "delivered");
        const half = await world.event(tenant, "delivered", "failed");
        const whole = await world.event(tenant, "failed", "failed");
        expect(await world.store.previewReplay(tenant.key, { kind: "failed" })).toBe(2);
        expect(await world.startReplay(tenant, "failed")).toMatchObject({ selected: 2 });
        world.clock.advance(1);
        const later = await world.event(tenant, "failed", "failed");
        expect(await world.queueAll()).toMatchObject([{ queued: 3, skipped: 0 }]);
        expect(await world.records(tenant, half)).toEqual([`DELIVERED ${a}`, `PENDING ${b}`]);
        expect(await world.records(tenant, whole)).toEqual([`PENDING ${a}`, `PENDING ${b}`]);
        expect(await world.records(tenant, later)).toEqual([`FAILED ${a}`, `FAILED ${b}`]);
      });

      test("of what failed takes what had failed before the clock stepped back, also after a restart", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const failed = await world.event(tenant, "retry");
        world.clock.advance(60_000);
        const [delivery] = await world.due(tenant);
        if (delivery) await world.settle(delivery, "failed");
        world.clock.advance(-3_600_000);
        await world.reopen();
        expect(await world.startReplay(tenant, "failed")).toMatchObject({ selected: 1 });
        expect(await world.queueAll()).toMatchObject([{ queued: 1 }]);
        expect(await world.records(tenant, failed)).toEqual([`PENDING ${a}`]);
      });

      test("of nothing is completed in its turn", async () => {
        const tenant = await world.tenant({ urls: [a] });
        expect(await world.store.previewReplay(tenant.key, { kind: "all" })).toBe(0);
        await world.startReplay(tenant, "all");
        expect(await world.queueAll()).toMatchObject([{ status: "completed", selected: 0, queued: 0 }]);
        expect(await world.store.queueReplayBatch(10, world.clock.now())).toBeNull();
      });

      test("is previewed for one event, too", async () => {
        const tenant = await world.tenant();
        const eventId = await world.event(tenant);
        expect(await world.store.previewReplay(tenant.key, { kind: "single", eventId })).toBe(1);
        expect(await world.store.previewReplay(tenant.key, { kind: "single", eventId: "evt_x" })).toBe(0);
      });

      test("does nothing twice when the program ends in the middle", async () => {
        const tenant = await world.tenant({ urls: [a] });
        for (let i = 0; i < 7; i++) await world.event(tenant, "delivered");
        const replay = await world.startReplay(tenant, "all");
        for (let i = 0; i < 4; i++) {
          await world.store.queueReplayBatch(2, world.clock.now());
          await settleAll(tenant);
          await world.reopen();
        }
        expect(await world.store.queueReplayBatch(2, world.clock.now())).toBeNull();
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", queued: 7, delivered: 7 });
        const { records } = await world.page(tenant);
        expect(records.map(({ attempts }) => attempts)).toEqual(records.map(() => 2));
      });

      test("waits for the earlier ones of its account; accounts take turns", async () => {
        const [one, two] = [await world.tenant({ urls: [a] }), await world.tenant({ urls: [a] })];
        for (const tenant of [one, two]) for (let i = 0; i < 4; i++) await world.event(tenant, "delivered");
        const replays = [
          await world.startReplay(one, "all"),
          await world.startReplay(one, "all"),
          await world.startReplay(two, "all"),
        ];
        const turns: number[] = [];
        const queueAll = async () => {
          for (;;) {
            const batch = await world.store.queueReplayBatch(3, world.clock.now());
            if (!batch) break;
            turns.push(replays.findIndex(({ id }) => id === batch.replay.id));
          }
        };
        await queueAll();
        expect(turns.filter((turn) => turn < 2)).toEqual([0, 0]);
        expect(turns.indexOf(2)).toBe(1);
        expect(await world.replay(one, replays[0]?.id ?? "")).toMatchObject({ status: "running", queued: 4 });
        expect(await world.replay(one, replays[1]?.id ?? "")).toMatchObject({ status: "waiting", queued: 0 });
        for (const delivery of await world.due(one)) await world.settle(delivery, "delivered");
        await queueAll();
        expect(turns.filter((turn) => turn < 2)).toEqual([0, 0, 1, 1]);
        const [first] = replays;
        expect(await world.replay(one, first?.id ?? "")).toMatchObject({
          status: "completed",
          delivered: 4,
          superseded: 0,
        });
      });

      test("as many as allowed wait or run", async () => {
        const tenant = await world.tenant();
        const limits = { unfinished: 2, perDay: null };
        const start = () => world.store.startReplay(tenant.key, newReplay("all"), world.clock.now(), limits);
        await start();
        await start();
        expect(await refusalOf(start())).toBe("rate_limited too_many_replays");
        await world.queueAll();
        expect(await refusalOf(start())).toBe("fulfilled");
      });

      test("a cancelled one leaves out what is not queued yet", async () => {
        const tenant = await world.tenant({ urls: [a] });
        for (let i = 0; i < 3; i++) await world.event(tenant, "delivered");
        const { id } = await world.startReplay(tenant, "all");
        await world.store.queueReplayBatch(2, world.clock.now());
        const cancelled = await world.store.cancelReplay(tenant.key, id, world.clock.now());
        expect(cancelled).toMatchObject({ status: "cancelled", queued: 2, completedAt: world.clock.now() });
        expect(await world.store.queueReplayBatch(2, world.clock.now())).toBeNull();
        await settleAll(tenant);
        expect(await world.replay(tenant, id)).toMatchObject({ status: "cancelled", delivered: 2 });
        const stranger = await world.tenant();
        expect(await world.store.cancelReplay(stranger.key, id, 1)).toBeNull();
        expect(await world.store.findReplay(stranger.key, id)).toBeNull();
      });

      test("one that has all queued and is cancelled lets the next one begin, and goes on counting", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.event(tenant, "delivered");
        const { id } = await world.startReplay(tenant, "all");
        await world.queueAll();
        const next = await world.startReplay(tenant, "all");
        expect(await world.queueAll()).toEqual([]);
        expect(await world.store.cancelReplay(tenant.key, id, 1)).toMatchObject({ status: "cancelled", queued: 1 });
        const [delivery] = await world.due(tenant);
        if (delivery) await world.settle(delivery, "delivered");
        expect(await world.replay(tenant, id)).toMatchObject({ status: "cancelled", delivered: 1 });
        await world.queueAll();
        expect(await world.replay(tenant, next.id)).toMatchObject({ status: "running", queued: 1 });
      });

      test("of an account that the operator has suspended waits; of a deleted one it is cancelled", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.event(tenant, "delivered");
        await world.startReplay(tenant, "all");
        await world.store.suspend(tenant.key, "operator", 1);
        expect(await world.store.queueReplayBatch(10, world.clock.now())).toBeNull();
        await world.store.resume(tenant.key, "operator");
        await world.store.deleteTenant(tenant.key, 1);
        const batch = await world.store.queueReplayBatch(10, world.clock.now());
        expect(batch).toMatchObject({ tenantId: tenant.id, tenantKey: tenant.key, webhookKeys: [] });
        expect(batch?.replay).toMatchObject({ status: "cancelled", queued: 0 });
        expect(await world.store.queueReplayBatch(10, world.clock.now())).toBeNull();
      });

      test("are listed newest first", async () => {
        const tenant = await world.tenant();
        const ids = [];
        for (let i = 0; i < 3; i++) ids.push((await world.startReplay(tenant, "all")).id);
        const { replays, total } = await world.replaysOf(tenant.key, { offset: 0, limit: 2 });
        expect({ ids: replays.map(({ id }) => id), total }).toEqual({ ids: ids.toReversed().slice(0, 2), total: 3 });
        expect((await world.replaysOf(tenant.key, { offset: 2, limit: 2 })).replays).toHaveLength(1);
      });
    });

    describe("a deleted tenant", () => {
      /** A tenant with rows in every table that may have them. */
      async function makeFull(): Promise<{ tenant: Tenant; delivery: DueDelivery }> {
        const tenant = await world.tenant({ tier: "business", loginEmail: "full@x.io", urls: [a, b] });
        await world.event(tenant, "delivered", "failed");
        const id = await world.event(tenant, "retry", "failed");
        await world.accept(tenant, { idempotency: { key: "k", fingerprint: bytes("f") } });
        await world.replayEvent(tenant, id);
        await world.setUrls(tenant, b);
        await world.startReplay(tenant, "all", { label: "x".repeat(1_000) });
        await world.store.queueReplayBatch(1, world.clock.now());
        await world.store.rotateApiKey(tenant.key, newApiKeyRow(), 1, 1);
        await world.store.rotateSigningKey(tenant.key, newSigningKeyRow(), 1, 2, 1);
        await world.store.rotateSigningSecret(tenant.key, bytes("x"), 2, 1);
        await world.store.rememberLogin(tenant.key, "192.0.2.1", 1);
        await world.store.setInboxAnswer(tenant.key, { status: 503, delayMs: 0, silent: false });
        for (let i = 0; i < 3; i++) await world.store.keepInboxDelivery(tenant.key, newInboxDelivery(), 100);
        await world.store.addStats([
          {
            tenantKey: tenant.key,
            minute: 1,
            accepted: 1,
            delivered: 0,
            failed: 0,
            attempts: 0,
            latency: new Map([[3, 1]]),
          },
        ]);
        const [delivery] = await world.due(tenant);
        if (!delivery) throw new Error("something is due");
        return { tenant, delivery };
      }

      test.each([1, 3, 1_000])("leaves no row in any table, erased %i rows at a time", async (limit) => {
        const neighbour = await world.tenant({ urls: [a] });
        const id = await world.event(neighbour, "failed");
        const before = world.backend.countRows();
        const { tenant } = await makeFull();
        const full = world.backend.countRows();
        const filled = Object.entries(before).filter(([table]) => !ofNoTenant.test(table));
        for (const [table, rows] of filled) expect([table, full[table]]).not.toEqual([table, rows]);
        await world.store.deleteTenant(tenant.key, world.clock.now());
        await world.store.deleteTenant(tenant.key, world.clock.now());
        let steps = 0;
        while (await world.store.eraseDeleted(limit)) {
          steps += 1;
          if (steps === 5) await world.reopen();
        }
        expect(world.backend.countRows()).toEqual(before);
        expect(await world.records(neighbour, id)).toEqual([`FAILED ${a}`]);
        expect(await world.store.eraseDeleted(limit)).toBe(false);
      });

      test("is not found, and frees its credentials", async () => {
        const apiKey = newApiKeyRow();
        const tenant = await world.tenant({ apiKey, loginEmail: "me@x.io" });
        await world.store.deleteTenant(tenant.key, 1);
        expect(await world.store.findTenant(tenant.id)).toBeNull();
        expect(await world.store.findTenantByLoginEmail("me@x.io")).toBeNull();
        expect(await world.store.findApiKey(apiKey.hash)).toBeNull();
      });

      test.each([false, true])("takes no writes (rows erased: %p)", async (erased) => {
        const { tenant, delivery } = await makeFull();
        const { key } = tenant;
        const { store } = world;
        const [replay] = (await world.replaysOf(key, { offset: 0, limit: 1 })).replays;
        await store.deleteTenant(key, 1);
        if (erased) while (await store.eraseDeleted(1_000));
        const before = world.backend.countRows();
        const writes = [
          world.accept(tenant),
          store.setTier(key, "pro"),
          store.suspend(key, "operator", 1),
          store.resume(key, "operator"),
          store.setPassword(key, "x"),
          store.replacePassword(key, "x", "y"),
          store.changeEmail(key, "x@example.com"),
          store.rotateApiKey(key, newApiKeyRow(), 1, 1),
          store.rotateSigningKey(key, newSigningKeyRow(), 1, 1, 1),
          store.rotateSigningSecret(key, bytes("x"), 1, 1),
          store.endAllSessions(key),
          store.rememberLogin(key, "192.0.2.9", 1),
          store.replaceWebhooks(key, [], 1, 1),
          world.replayEvent(tenant, delivery.eventId),
          world.startReplay(tenant, "all"),
          store.cancelReplay(key, replay?.id ?? "", 1),
          store.setInboxAnswer(key, { status: 204, delayMs: 0, silent: true }),
          store.keepInboxDelivery(key, newInboxDelivery(), 100),
          store.emptyInbox(key),
        ].map(refusalOf);
        expect(await Promise.all(writes)).toEqual(writes.map(() => "unauthenticated account_gone"));
        expect(await world.settle(delivery, "delivered")).toEqual({ kind: "gone", attemptKey: null });
        await store.touchApiKeys(new Map([["key_x", 1]]));
        await store.failDeliveriesOfRemoved(100);
        await store.queueReplayBatch(100, 1);
        expect(world.backend.countRows()).toEqual(before);
        if (!erased) while (await store.eraseDeleted(1_000));
        expect(world.backend.countRows().delivery).toBe(0);
      });
    });

    describe("maintenance", () => {
      test("prune forgets what has outlived its use, and nothing else", async () => {
        const tenant = await world.tenant();
        const { key } = tenant;
        const start = world.clock.now();
        for (const name of ["k1", "k2"]) {
          await world.accept(tenant, { idempotency: { key: name, fingerprint: bytes(name) } });
          await world.store.endSession(name, world.clock.now());
          await world.store.rememberLogin(key, name, world.clock.now() - 29 * dayMs);
          await world.store.rotateSigningKey(key, newSigningKeyRow(), start, world.clock.now(), start);
          await world.store.rotateSigningSecret(key, bytes(name), world.clock.now(), start);
          world.clock.advance(1_000);
        }
        const before = world.backend.countRows();
        expect(await world.store.prune(start - 1, 10)).toBe(false);
        expect(world.backend.countRows()).toEqual(before);
        expect(await world.store.prune(start + dayMs, 10)).toBe(false);
        const left = world.backend.countRows();
        expect(left).toMatchObject({
          idempotency: 1,
          login_address: 1,
          ended_session: 0,
          signing_key: 1,
          signing_secret: 1,
        });
        expect(left).toMatchObject({ event: 2, tenant: 1, api_key: 1 });
        expect(await world.store.hasLoggedInSince(key, "k2", 0)).toBe(true);
      });

      test("prune takes at most so many at a time", async () => {
        for (let i = 0; i < 5; i++) await world.store.endSession(`s${i}`, 1);
        expect(await world.store.prune(2, 2)).toBe(true);
        expect(world.backend.countRows().ended_session).toBe(3);
        while (await world.store.prune(2, 2));
        expect(world.backend.countRows().ended_session).toBe(0);
      });

      test("space is given back step by step", async () => {
        const tenant = await world.tenant();
        const payloads = Array.from({ length: 100 }, () => new Uint8Array(10_000).fill(97));
        await world.accept(tenant, { payloads });
        await world.store.deleteTenant(tenant.key, 1);
        while (await world.store.eraseDeleted(1_000));
        expect(await world.store.reclaim(40_000)).toBe(true);
        while (await world.store.reclaim(400_000));
        expect(await world.store.reclaim(40_000)).toBe(false);
      });

      test("a probe is a write", async () => {
        await world.store.probe();
        expect(world.store.oldestWaitingWriteMs()).toBe(0);
        const probe = world.store.probe();
        world.clock.advance(50);
        expect(world.store.oldestWaitingWriteMs()).toBe(50);
        await probe;
        expect(world.store.oldestWaitingWriteMs()).toBe(0);
      });

      test("closing commits what was submitted, and refuses what comes after", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const accepted = world.accept(tenant);
        const closed = world.store.close();
        expect(await refusalOf(world.store.probe())).toBe("unavailable shutting_down");
        expect(await refusalOf(accepted)).toBe("fulfilled");
        await closed;
        await world.store.close();
        await world.reopen();
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 0, FAILED: 0 });
      });
    });

    test("a walk of random verbs keeps counters and records in step", async () => {
      const tenant = await world.tenant({ urls: [a, b] });
      let seed = 7;
      const random = (below: number) => {
        seed = (seed * 48_271) % 2_147_483_647;
        return seed % below;
      };
      const ids: string[] = [];
      const held: DueDelivery[] = [];
      for (let step = 0; step < 300; step++) {
        const action = random(9);
        if (action <= 2) ids.push((await world.accept(tenant)).eventIds[0] ?? "");
        else if (action <= 4) {
          held.push(...(await world.due(tenant)).slice(0, 3));
          const [delivery] = held.splice(random(held.length || 1), 1);
          const outcome = (["delivered", "failed", "retry"] as const)[random(3)] ?? "failed";
          if (delivery) await world.store.settle(settlementOf(delivery, outcome, world.clock.now()));
        } else if (action === 5) await world.setUrls(tenant, ...[a, b, c].filter(() => random(2) === 0));
        else if (action === 6) await world.store.failDeliveriesOfRemoved(2);
        else if (action === 7 && ids.length > 0) await world.replayEvent(tenant, ids[random(ids.length)] ?? "");
        else if (action === 8) {
          // Refused while eleven have not ended.
          await world.startReplay(tenant, random(2) === 0 ? "all" : "failed").catch(() => {});
          await world.store.queueReplayBatch(5, world.clock.now());
          await world.queueAll(7);
        }
        world.clock.advance(random(30_000));
        await world.totals(tenant);
      }
      await world.setUrls(tenant);
      while (await world.store.failDeliveriesOfRemoved(10));
      await world.queueAll();
      expect((await world.totals(tenant)).PENDING).toBe(0);
      const { replays } = await world.replaysOf(tenant.key, { offset: 0, limit: 1_000 });
      for (const { status, queued, delivered, failed, superseded } of replays) {
        expect({ status, ended: delivered + failed + superseded }).toEqual({ status: "completed", ended: queued });
      }
    });
  });
}
