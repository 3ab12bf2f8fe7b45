import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Act, auditLifetimeMs, auditLimits } from "../../../src/domain/audit.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { AuditQuery } from "../../../src/store/audit.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import {
  bytes,
  createWorld,
  newAct,
  newApiKeyRow,
  newSigningKeyRow,
  refusalOf,
  type World,
} from "../../support/store-factory.ts";

const a = "https://a.example/hook?token=secret";
const b = "https://b.example/hook";
const guess = (address: string) => newAct({ action: "login.failed", actor: "stranger", address });

/** `AuditVerbs` of `src/store/audit.ts` as tests, and what the verbs that write note. */
export function auditContract(backend: StoreBackend): void {
  describe(`${backend.name} keeps who did what:`, () => {
    let world: World;
    let tenant: Tenant;
    beforeEach(async () => {
      world = await createWorld(backend);
      tenant = await world.tenant({ tier: "business", loginEmail: "ada@x.io", urls: [a] });
    });
    afterEach(() => world.end());

    const list = (query: Partial<AuditQuery> = {}) => world.store.audit({ offset: 0, limit: 100, ...query });
    const actions = async (query: Partial<AuditQuery> = {}) =>
      (await list(query)).entries.map(({ action, times }) => (times === 1 ? action : `${action} ×${times}`));

    /** Each verb that takes an act, with one, for the tenant. */
    const verbs: readonly [string, (tenant: Tenant, act: Act) => Promise<unknown>][] = [
      ["setTier", ({ key }, act) => world.store.setTier(key, "enterprise", act)],
      ["setLimits", ({ key }, act) => world.store.setLimits(key, { ownWebhooks: 3 }, act)],
      ["suspend", ({ key }, act) => world.store.suspend(key, "operator", 1, act)],
      ["resume", ({ key }, act) => world.store.resume(key, "operator", act)],
      ["changeEmail", ({ key }, act) => world.store.changeEmail(key, "b@x.io", act)],
      ["setPassword", ({ key }, act) => world.store.setPassword(key, "x", act)],
      ["replacePassword", ({ key }, act) => world.store.replacePassword(key, "hash", "x", act)],
      ["rotateApiKey", ({ key }, act) => world.store.rotateApiKey(key, newApiKeyRow(), 1, 1, act)],
      ["rotateSigningKey", ({ key }, act) => world.store.rotateSigningKey(key, newSigningKeyRow(), 1, 2, 1, act)],
      ["rotateSigningSecret", ({ key }, act) => world.store.rotateSigningSecret(key, bytes("x"), 2, 1, act)],
      ["endAllSessions", ({ key }, act) => world.store.endAllSessions(key, act)],
      ["rememberLogin", ({ key }, act) => world.store.rememberLogin(key, "192.0.2.1", 1, act)],
      ["replaceWebhooks", ({ key }, act) => world.store.replaceWebhooks(key, { webhooks: [], limit: 1 }, 1, act)],
      ["deleteTenant", ({ key }, act) => world.store.deleteTenant(key, 1, act)],
    ];

    test.each(verbs)("%s notes its act once it has written, and not when it is refused", async (_, verb) => {
      const act = newAct({ action: "tier.set", actor: "operator", via: "command of ada", address: "192.0.2.7" });
      const other = await world.tenant();
      await verb(tenant, act);
      const { entries, ...counted } = await list();
      const now = world.clock.now();
      const { detail: _detail, ...entry } = entries[0] ?? {};
      expect(entry).toEqual({ ...act, tenantId: tenant.id, times: 1, at: now, lastAt: now } as typeof entry);
      expect(counted).toEqual({ total: 1, totalIsExact: true });
      await world.store.deleteTenant(other.key, 1);
      await verb(other, act).catch(refusalOf);
      expect(await actions()).toEqual(["tier.set"]);
    });

    test("what is done by a replay, and that it is cancelled once", async () => {
      const id = await world.event(tenant, "failed");
      const one = { id: "rpl_1", kind: "single", label: "x", eventId: id } as const;
      const all = { id: "rpl_2", kind: "all", label: "x" } as const;
      const limits = { unfinished: 9, perDay: null };
      await world.store.replayEvent(tenant.key, one, 1, newAct({ action: "event.replayed" }));
      await world.store.startReplay(tenant.key, all, 1, limits, newAct({ action: "replay.started" }));
      const cancel = () => world.store.cancelReplay(tenant.key, "rpl_2", 1, newAct({ action: "replay.cancelled" }));
      await cancel();
      await cancel();
      expect(await world.store.cancelReplay(tenant.key, "rpl_9", 1, newAct({}))).toBeNull();
      expect(await actions()).toEqual(["replay.cancelled", "replay.started", "event.replayed"]);
    });

    test("what changed of webhooks, without what may be secret, and nothing when nothing did", async () => {
      const act = newAct({ action: "webhooks.changed" });
      const entry = (url: string, rest = {}) => ({ id: `whk_${url}`, url, name: "x", ...rest });
      const put = (...entries: ReturnType<typeof entry>[]) =>
        world.store.replaceWebhooks(tenant.key, { webhooks: entries, limit: 10 }, 1, act);
      await put(entry(a), entry(b));
      world.clock.advance(1);
      await put(entry(a), entry(b));
      await put(entry(b, { paused: true, sealedHeaders: bytes("sealed") }));
      expect((await list()).entries.map(({ detail }) => detail)).toEqual([
        {
          removed: ["https://a.example/hook"],
          paused: ["https://b.example/hook"],
          changed: ["https://b.example/hook: headers"],
        },
        { added: ["https://b.example/hook"], changed: ["https://a.example/hook: webhook_name"] },
      ]);
    });

    test("an account's own, of one action and a time, the newest first, in pages", async () => {
      const other = await world.tenant();
      const start = world.clock.now();
      for (const action of ["logout.all", "password.changed", "logout.all"] as const) {
        await world.store.noteAct(tenant.id, newAct({ action }));
        world.clock.advance(1_000);
      }
      await world.store.noteAct(other.id, newAct({ action: "password.changed" }));
      await world.store.noteAct(null, newAct({ action: "operator_token.rotated", actor: "operator" }));
      const tenantId = tenant.id;
      expect(await actions({ tenantId })).toEqual(["logout.all", "password.changed", "logout.all"]);
      expect(await actions({ tenantId, from: start + 1_000, to: start + 1_000 })).toEqual(["password.changed"]);
      expect(await list({ tenantId, offset: 1, limit: 1 })).toMatchObject({
        entries: [{ action: "password.changed" }],
        total: 3,
      });
      expect((await list({ action: "password.changed" })).entries.map((one) => one.tenantId)).toEqual([
        other.id,
        tenant.id,
      ]);
      expect(await actions({ tenantId: "" })).toEqual(["operator_token.rotated"]);
      await world.reopen();
      expect((await list()).total).toBe(5);
    });

    test("logins are counted in one entry for an hour and an address", async () => {
      const from = (address: string) => world.store.noteAct(tenant.id, newAct({ action: "login", address }));
      const start = world.clock.now();
      await from("192.0.2.1");
      world.clock.advance(1_000);
      await from("192.0.2.2");
      await from("192.0.2.1");
      expect((await list()).entries.map(({ address, times, at, lastAt }) => [address, times, at, lastAt])).toEqual([
        ["192.0.2.2", 1, start + 1_000, start + 1_000],
        ["192.0.2.1", 2, start, start + 1_000],
      ]);
      world.clock.advance(auditLimits.windowMs);
      await from("192.0.2.1");
      expect(await actions()).toEqual(["login", "login", "login ×2"]);
    });

    test("a guesser with many addresses takes up few places, and none of the account's own", async () => {
      await world.store.noteAct(tenant.id, newAct({ action: "password.changed" }));
      world.clock.advance(1);
      for (let i = 0; i < auditLimits.strangersAtOnce + 3; i++)
        await world.store.noteAct(tenant.id, guess(`2001:db8::${i}`));
      const { entries } = await list({ action: "login.failed" });
      expect(entries).toHaveLength(auditLimits.strangersAtOnce + 1);
      expect(entries.filter(({ address }) => address === null).map(({ times }) => times)).toEqual([3]);
      expect(await actions({ action: "password.changed" })).toEqual(["password.changed"]);
    });

    /** Entries of the account, older than any other, and each as old as its number says. */
    const fillWith = (actor: "account" | "operator", entries: number, tenantId = tenant.id) =>
      world.edit(
        `insert into audit (tenant_id, action, actor, times, at, last_at)
           with recursive n(i) as (select 1 union all select i + 1 from n where i < ${entries})
           select '${tenantId}', 'webhooks.changed', '${actor}', 1, i, i from n`,
      );
    const oldest = async () => {
      const { total } = await list();
      return (await list({ offset: total - 2 })).entries.map(({ actor, at }) => `${actor} ${at}`);
    };

    test("an account that does a lot pushes out what it did itself, and nothing that the operator did", async () => {
      await fillWith("operator", 1);
      await fillWith("account", auditLimits.entries - 1);
      await world.store.noteAct(tenant.id, newAct({ action: "webhooks.changed" }));
      await world.store.noteAct(tenant.id, newAct({ action: "tier.set", actor: "operator" }));
      expect((await list()).total).toBe(auditLimits.entries);
      expect(await oldest()).toEqual(["account 3", "operator 1"]);
    });

    test("an operator who does a lot keeps half of the places, and leaves the account the others", async () => {
      await fillWith("account", 1);
      await fillWith("operator", auditLimits.ofOperator);
      await world.store.noteAct(tenant.id, newAct({ action: "limits.set", actor: "operator" }));
      expect((await list()).total).toBe(auditLimits.ofOperator + 1);
      expect(await oldest()).toEqual(["operator 2", "account 1"]);
    });

    test("about the server, the operator has all places but those of strangers: no account is there to need them", async () => {
      const places = auditLimits.entries - auditLimits.ofStrangers;
      await fillWith("operator", places, "");
      await world.store.noteAct(null, newAct({ action: "server.restarted", actor: "operator" }));
      const { total } = await list({ tenantId: "" });
      const [last] = (await list({ tenantId: "", offset: total - 1 })).entries;
      expect([total, last?.at]).toEqual([places, 2]);
    });

    test("of an account that is gone nothing more is noted; of one that is erased stays what the operator did", async () => {
      const operator = newAct({ action: "account.suspended", actor: "operator", via: "command of ada" });
      await world.store.noteAct(tenant.id, { ...operator, detail: { reason: "personal" } });
      await world.store.noteAct(tenant.id, newAct({ action: "password.changed" }));
      await world.store.deleteTenant(
        tenant.key,
        1,
        newAct({ action: "account.deleted", detail: { email: "ada@x.io" } }),
      );
      await world.store.noteAct(tenant.id, guess("192.0.2.9"));
      expect((await list()).total).toBe(3);
      while (await world.store.eraseDeleted(1));
      const { entries } = await list({ tenantId: tenant.id });
      expect(entries.map(({ action, via, address, detail }) => [action, via, address, detail])).toEqual([
        ["account.deleted", null, null, undefined],
        ["account.suspended", "command of ada", "192.0.2.1", undefined],
      ]);
    });

    test("a year later it is forgotten", async () => {
      const start = world.clock.now();
      await world.store.noteAct(null, newAct({ action: "operator_token.rotated", actor: "operator" }));
      await world.store.prune(start + auditLifetimeMs - 1, 10);
      expect((await list()).total).toBe(1);
      await world.store.prune(start + auditLifetimeMs, 10);
      expect((await list()).total).toBe(0);
    });
  });
}
