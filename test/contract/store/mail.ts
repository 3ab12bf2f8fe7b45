import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type MailKind, mailRules, resetLifetimeMs, type WaitingMail } from "../../../src/domain/mail.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, newAct, type World } from "../../support/store-factory.ts";

const minuteMs = 60_000;
const token = bytes("a hash of 32 bytes, as it may be");
const act = newAct({ action: "password.reset", actor: "account" });

/** `MailVerbs` of `src/store/mail.ts` as tests. */
export function mailContract(backend: StoreBackend): void {
  describe(`${backend.name} has an outbox:`, () => {
    let world: World;
    let start: number;
    beforeEach(async () => {
      world = await createWorld(backend);
      start = world.clock.now();
    });
    afterEach(() => world.end());

    const queue = (n: number, at = start, recipient = "ada@x.io", kind: MailKind = "webhook.failing") =>
      world.store.queueMail({ kind, recipient, fact: { n } }, at);
    const due = async (at = start) => (await world.store.dueMail(at, 10)).mails;
    const shown = async (at?: number) =>
      (await due(at)).map(({ kind, recipient, state }) => [kind, recipient, ...state.facts.map(({ n }) => n)]);
    const first = async (at?: number) => {
      const [mail] = await due(at);
      if (!mail) throw new Error("a mail is due");
      return mail;
    };

    test("what is queued is due at once, for each kind and recipient one mail with all that there is to say", async () => {
      expect(await queue(1)).toBe(true);
      await queue(2, start + 1);
      await queue(3, start + 2, "eve@x.io");
      await queue(4, start + 3, "ada@x.io", "charge.failed");
      await world.reopen();
      expect(await shown(start + 3)).toEqual([
        ["webhook.failing", "ada@x.io", 1, 2],
        ["webhook.failing", "eve@x.io", 3],
        ["charge.failed", "ada@x.io", 4],
      ]);
      expect((await world.store.dueMail(start + 3, 1)).mails).toHaveLength(1);
      expect((await world.store.dueMail(start, 10)).nextAt).toBe(start + 2);
    });

    test("after one was sent the next of its kind waits for an hour, and so does what came meanwhile", async () => {
      await queue(1);
      const said = await first();
      await queue(2);
      await world.store.mailSent(said, start + 10);
      expect(await shown(start + 10)).toEqual([]);
      const next = start + 10 + mailRules.intervalMs;
      expect((await world.store.dueMail(start + 10, 10)).nextAt).toBe(next);
      expect(await shown(next)).toEqual([["webhook.failing", "ada@x.io", 2]]);
      await world.store.mailSent(await first(next), next);
      await queue(3, next + 1);
      expect(await shown(next + 1)).toEqual([]);
      expect(await shown(next + mailRules.intervalMs)).toEqual([["webhook.failing", "ada@x.io", 3]]);
    });

    test("one that cannot be sent is tried later and later, and given up after a day", async () => {
      await queue(1);
      expect(await world.store.mailNotSent(await first(), start)).toBe(true);
      expect(await shown(start + minuteMs - 1)).toEqual([]);
      expect(await world.store.mailNotSent(await first(start + minuteMs), start + minuteMs)).toBe(true);
      expect(await shown(start + 3 * minuteMs - 1)).toEqual([]);
      const late = start + mailRules.lifetimeMs;
      expect(await world.store.mailNotSent(await first(late), late)).toBe(false);
      expect(await world.store.dueMail(late + mailRules.lifetimeMs, 10)).toEqual({ mails: [], nextAt: null });
      await world.store.prune(late + mailRules.lifetimeMs, 10);
      expect((await world.count()).mail).toBe(0);
    });

    test("what was added to one that is given up is tried on", async () => {
      await queue(1);
      await world.store.mailNotSent(await first(), start);
      const late = start + mailRules.lifetimeMs;
      await queue(2, late - minuteMs);
      await world.reopen();
      expect(await world.store.mailNotSent(await first(late), late)).toBe(false);
      const { nextAt } = await world.store.dueMail(late, 10);
      expect(await shown(nextAt ?? late)).toEqual([["webhook.failing", "ada@x.io", 2]]);
    });

    test("one of which nothing holds any longer delays neither the next nor what came meanwhile", async () => {
      await queue(1);
      const read = await first();
      await queue(2);
      await world.store.mailDropped(read, start + 10);
      expect(await shown(start + 10)).toEqual([["webhook.failing", "ada@x.io", 2]]);
      await world.store.mailDropped(await first(start + 10), start + 10);
      expect(await shown(start + 10)).toEqual([]);
      await queue(3, start + 11);
      expect(await shown(start + 11)).toEqual([["webhook.failing", "ada@x.io", 3]]);
    });

    const late: readonly [string, (said: WaitingMail, at: number) => Promise<unknown>][] = [
      ["sent", (said, at) => world.store.mailSent(said, at)],
      ["dropped", (said, at) => world.store.mailDropped(said, at)],
      ["not sent", (said, at) => world.store.mailNotSent(said, at)],
    ];
    test.each(late)("one that is noted late as %s, after another server sent it, changes nothing", async (_, note) => {
      await queue(1);
      const said = await first();
      await world.store.mailSent(said, start + 10);
      await note(said, start + 20);
      expect(await world.store.dueMail(start + 10 * mailRules.intervalMs, 10)).toEqual({ mails: [], nextAt: null });
      await queue(2, start + 30);
      await note(said, start + 40);
      const next = start + 10 + mailRules.intervalMs;
      expect((await world.store.dueMail(start + 40, 10)).nextAt).toBe(next);
      expect(await shown(next)).toEqual([["webhook.failing", "ada@x.io", 2]]);
    });

    test("a link that waits to be tried again gives way to a newer one, and keeps its turn", async () => {
      const { store } = world;
      const tenant = await world.tenant({ tier: "pro", email: "ada@x.io", loginEmail: "ada@x.io" });
      const order = (hash: string, at: number) => {
        const fact = { tenantId: tenant.id, n: hash };
        return store.orderPasswordReset(
          tenant.key,
          bytes(hash),
          { kind: "password.reset", recipient: "ada@x.io", fact },
          at,
        );
      };
      expect(await order("old", start)).toBe(true);
      await store.mailNotSent(await first(), start);
      expect(await order("new", start + 1)).toBe(true);
      expect(await shown(start + minuteMs - 1)).toEqual([]);
      expect(await shown(start + minuteMs)).toEqual([["password.reset", "ada@x.io", "new"]]);
      expect(await store.findPasswordReset(bytes("old"), start + 1)).toBeNull();
      expect(await store.findPasswordReset(bytes("new"), start + 1)).toEqual(tenant);
    });

    test("a link sets one new password, ends every session, and there is one an hour", async () => {
      const tenant = await world.tenant({ tier: "pro", email: "Ada@x.io", loginEmail: "ada@x.io" });
      const order = { kind: "password.reset", recipient: "ada@x.io", fact: { n: 1 } } as const;
      const { store } = world;
      expect(await store.orderPasswordReset(tenant.key, token, order, start)).toBe(true);
      expect(await store.orderPasswordReset(tenant.key, bytes("other"), order, start)).toBe(false);
      expect(await shown()).toEqual([["password.reset", "ada@x.io", 1]]);
      expect(await store.findPasswordReset(bytes("other"), start)).toBeNull();
      expect(await store.findPasswordReset(token, start + resetLifetimeMs)).toBeNull();
      expect(await store.findPasswordReset(token, start)).toEqual(tenant);
      const changed = await store.usePasswordReset(token, "new", start, act);
      expect(changed).toEqual({ ...tenant, passwordHash: "new", sessionVersion: tenant.sessionVersion + 1 });
      expect(await store.findTenant(tenant.id)).toEqual(changed as Tenant);
      expect(await store.usePasswordReset(token, "again", start, act)).toBeNull();
      expect((await store.audit({ tenantId: tenant.id, offset: 0, limit: 9 })).entries).toMatchObject([act]);
    });

    const endings: readonly [string, (tenant: Tenant) => Promise<unknown>][] = [
      ["another password", ({ key }) => world.store.setPassword(key, "x")],
      ["another address", ({ key }) => world.store.changeEmail(key, "new@x.io")],
      ["the end of the account", ({ key }) => world.store.deleteTenant(key, 1)],
    ];
    test.each(endings)("a link does not outlive %s", async (_, end) => {
      const tenant = await world.tenant({ tier: "pro", email: "ada@x.io", loginEmail: "ada@x.io" });
      const order = { kind: "password.reset", recipient: "ada@x.io", fact: {} } as const;
      await world.store.orderPasswordReset(tenant.key, token, order, start);
      await end(tenant);
      expect(await world.store.findPasswordReset(token, start)).toBeNull();
      expect(await world.store.usePasswordReset(token, "new", start, act)).toBeNull();
    });
  });
}
