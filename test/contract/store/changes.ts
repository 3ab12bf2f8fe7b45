import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Change } from "../../../src/domain/change.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import {
  bytes,
  createWorld,
  newApiKeyRow,
  newSigningKeyRow,
  newTenant,
  refusalOf,
  type World,
} from "../../support/store-factory.ts";
import { newCharge, newIds, newInvoice, payingIn, payment } from "../billing/paying.ts";

const [a, b] = ["https://a.example", "https://b.example"];

/** `ChangeSource` of `src/store/store.ts` as tests. */
export function changesContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    let told: Change[];
    beforeEach(async () => {
      world = await createWorld(backend);
      told = [];
      world.store.onChange((change) => void told.push(change));
    });
    afterEach(() => world.end());

    const { now, unverified, openPage, pay, verified, charged, fail, books } = payingIn(() => world);

    /** What is told of one act on an account, without whose it is, once that was compared. */
    async function toldOf({ key, id }: Tenant, act: () => Promise<unknown>): Promise<string[]> {
      told = [];
      await act();
      return told.map((change) => {
        if (change.kind === "session_ended") return `${change.kind} ${change.sessionId}`;
        expect(change).toMatchObject({ tenantKey: key, tenantId: id });
        return change.kind === "plan_changed" ? `${change.kind} ${change.tier}` : change.kind;
      });
    }

    describe("changes", () => {
      const simple: readonly [string, string[], (tenant: Tenant) => Promise<unknown>][] = [
        ["an account is deleted", ["account_deleted"], ({ key }) => world.store.deleteTenant(key, now())],
        ["the operator suspends it", ["account_suspended"], ({ key }) => world.store.suspend(key, "operator", now())],
        ["the operator sets its tier", ["plan_changed pro"], ({ key }) => world.store.setTier(key, "pro")],
        [
          "the operator sets its limits",
          ["account_changed"],
          ({ key }) => world.store.setLimits(key, { ownWebhooks: 2 }),
        ],
        ["its password is set", ["sessions_ended"], ({ key }) => world.store.setPassword(key, "new")],
        ["its password is replaced", ["sessions_ended"], ({ key }) => world.store.replacePassword(key, "hash", "new")],
        ["all its sessions end", ["sessions_ended"], ({ key }) => world.store.endAllSessions(key)],
        ["one session ends", ["session_ended s1"], () => world.store.endSession("s1", now() + 1)],
        ["its e-mail changes", ["account_changed"], ({ key }) => world.store.changeEmail(key, "new@x.io")],
        ["it is suspended for a payment", ["account_changed"], ({ key }) => world.store.suspend(key, "payment", 1)],
        [
          "its API key is rotated",
          ["api_keys_changed"],
          ({ key }) => world.store.rotateApiKey(key, newApiKeyRow(), now(), now()),
        ],
        [
          "its signing key is rotated",
          ["signing_changed"],
          ({ key }) => world.store.rotateSigningKey(key, newSigningKeyRow(), now(), now(), now()),
        ],
        [
          "its signing secret is rotated",
          ["signing_changed"],
          ({ key }) => world.store.rotateSigningSecret(key, bytes("second"), now(), now()),
        ],
        [
          "a replay of it is cancelled",
          ["replay_cancelled"],
          async (tenant) => {
            const { replay } = await world.replayEvent(tenant, await world.event(tenant, "failed"));
            return world.store.cancelReplay(tenant.key, replay.id, now());
          },
        ],
        [
          "a webhook of it pauses",
          ["webhooks_throttled"],
          (tenant) => world.setUrls(tenant, { url: a, paused: true }, b),
        ],
        [
          "a webhook of it gets headers",
          ["webhooks_throttled"],
          (tenant) => world.setUrls(tenant, { url: a, sealedHeaders: bytes("sealed") }, b),
        ],
        ["a webhook of it is removed", ["webhooks_removed"], (tenant) => world.setUrls(tenant, b)],
      ];
      test.each(simple)("are told before the answer: %s", async (_, expected, act) => {
        const tenant = await world.tenant({ tier: "free", enforcedTier: "free", urls: [a, b] });
        const order: string[] = [];
        world.store.onChange((change) => {
          told.push(change);
          order.push("told");
        });
        const kinds = await toldOf(tenant, () => act(tenant).then(() => order.push("answered")));
        expect([kinds, order]).toEqual([expected, ["told", "answered"]]);
      });

      test("name the webhooks that ceased", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const [first] = await world.store.webhooks(tenant.key);
        await world.setUrls(tenant, b, "https://c.example");
        expect(told).toMatchObject([{ kind: "webhooks_removed", webhookKeys: [first?.key] }]);
      });

      test("name the webhooks whose queues go by something else, and how", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const [first] = await world.store.webhooks(tenant.key);
        await world.setUrls(tenant, { url: a, paused: true, rateLimit: 5, maxConcurrency: 2 }, { url: b, name: "B" });
        const throttle = { paused: true, resumes: false, rateLimit: 5, maxConcurrency: 2 };
        expect(told).toMatchObject([
          { kind: "webhooks_throttled", webhooks: [{ webhookKey: first?.key, ...throttle }] },
        ]);
        await world.setUrls(tenant, a, b);
        expect(told).toHaveLength(1);
        await world.setUrls(tenant, { url: a, paused: false }, b);
        const resumed = { ...throttle, paused: false, resumes: true };
        expect(told[1]).toMatchObject({ webhooks: [{ webhookKey: first?.key, ...resumed }] });
      });

      test("say how a webhook stands, whenever that is another", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const [webhook] = await world.store.webhooks(tenant.key);
        const [ref, id] = [{ tenantKey: tenant.key, webhookKey: webhook?.key ?? 0 }, webhook?.id ?? ""];
        const fail =
          (at: number, { since = 0, gone = [] as number[] } = {}) =>
          () =>
            world.store.noteFailures(ref, { since, at, gone, excusedMs: 0 }, { disableAfterMs: 1 });
        const succeed = () => world.store.noteSuccess(ref, 4);
        const enable = () => world.store.enableWebhook(tenant.key, id);
        const acts = [
          fail(0),
          fail(1),
          succeed,
          succeed,
          fail(2, { since: 1 }),
          fail(3, { gone: [3, 3, 3] }),
          succeed,
          enable,
          enable,
        ];
        const told_: unknown[] = [];
        for (const act of acts) {
          await toldOf(tenant, act);
          told_.push(told.flatMap((change) => (change.kind === "webhook_stands" ? [change.as, change.at] : [])));
        }
        const stood = [["failing", 0], [], ["well", 4], [], ["failing", 1], ["disabled", 3], [], ["well", now()], []];
        expect(told_).toEqual(stood);
      });

      test("are told of an account that is resumed", async () => {
        const tenant = await world.tenant();
        await world.store.suspend(tenant.key, "operator", now());
        expect(await toldOf(tenant, () => world.store.resume(tenant.key, "operator"))).toEqual(["account_resumed"]);
      });

      test("are each told in their order when they are made at once", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const kinds = await toldOf(tenant, () =>
          Promise.all([
            world.setUrls(tenant, b),
            world.setUrls(tenant, "https://c.example"),
            world.store.suspend(tenant.key, "operator", 1).then(() => world.store.resume(tenant.key, "operator")),
          ]),
        );
        // Whichever came first: also of a webhook that was added and removed before anybody heard of it.
        expect(kinds.filter((kind) => kind === "webhooks_removed")).toHaveLength(2);
        expect(kinds.filter((kind) => kind !== "webhooks_removed")).toEqual(["account_suspended", "account_resumed"]);
      });

      test("are told by payments: a card that is verified, in place of the plan that waits for it", async () => {
        const { tenant, accountKey } = await unverified();
        const page = await openPage(accountKey);
        expect(await toldOf(tenant, () => pay(page))).toEqual(["plan_changed pro"]);
      });

      test("are told by payments: an upgrade that waits for a card, and its end", async () => {
        const tenant = await world.tenant({ tier: "free", enforcedTier: "free" });
        const upgrade = { tier: "pro", login: null } as const;
        const asked = () => world.store.openVerification(tenant.key, newIds(), upgrade, now());
        expect(await toldOf(tenant, asked)).toEqual(["account_changed"]);
        const { verification } = await books((await world.store.billingAccountOf(tenant.key)) ?? 0);
        const end = () => world.store.giveUpVerification(verification?.key ?? 0, now());
        expect(await toldOf(tenant, end)).toEqual(["account_changed"]);
      });

      test("are told by payments: an upgrade that was charged", async () => {
        const { tenant, accountKey } = await verified();
        const { card } = await books(accountKey);
        const charge = newCharge({ cardKey: card?.key ?? null });
        const order = { invoice: newInvoice("upgrade", []), charge, tier: "business", login: null } as const;
        await world.store.prepareUpgrade(accountKey, order, now());
        const settle = () => world.store.settleCharge(charge.reference, payment, now());
        expect(await toldOf(tenant, settle)).toEqual(["plan_changed business"]);
      });

      test("are told by payments: a charge that failed", async () => {
        const { tenant, accountKey } = await verified();
        const { charge } = await charged(accountKey);
        const failOnce = () => fail(charge, { kind: "retry", at: now() + 1 });
        expect(await toldOf(tenant, failOnce)).toEqual(["account_changed"]);
      });

      test("are none: what a running program keeps nothing of", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const apiKey = newApiKeyRow();
        await world.store.createTenant(newTenant({ apiKey }), now());
        await world.store.touchApiKeys(new Map([[apiKey.id, now()]]));
        await world.store.rememberLogin(tenant.key, "192.0.2.1", now());
        await world.setUrls(tenant, a, b);
        await world.event(tenant, "delivered");
        expect(told).toEqual([]);
      });

      const refused: readonly [string, (tenant: Tenant) => Promise<unknown>][] = [
        [
          "invalid too_many_webhooks",
          ({ key }) => world.store.replaceWebhooks(key, { webhooks: [], limit: -1 }, now()),
        ],
        ["invalid email_taken", ({ key }) => world.store.changeEmail(key, "taken@x.io")],
        ["unavailable shutting_down", ({ key }) => world.store.close().then(() => world.store.setTier(key, "pro"))],
      ];
      test.each(refused)("that are %s are not told", async (refusal, act) => {
        await world.tenant({ email: "taken@x.io", loginEmail: "taken@x.io" });
        const tenant = await world.tenant({ urls: [a] });
        expect([await refusalOf(act(tenant)), told]).toEqual([refusal, []]);
      });

      test("of an account that is gone are not told", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.store.deleteTenant(tenant.key, now());
        const acts = [
          () => world.store.suspend(tenant.key, "operator", now()),
          () => world.store.rotateApiKey(tenant.key, newApiKeyRow(), now(), now()),
          () => world.setUrls(tenant),
        ];
        for (const act of acts) {
          expect(await toldOf(tenant, async () => expect(await refusalOf(act())).toContain("account_gone"))).toEqual(
            [],
          );
        }
        expect(await toldOf(tenant, () => world.store.deleteTenant(tenant.key, now()))).toEqual([]);
      });

      test("are made and answered whatever the listener does", async () => {
        const tenant = await world.tenant();
        world.store.onChange(() => {
          throw new Error("a defect");
        });
        await Promise.all([world.store.setTier(tenant.key, "pro"), world.store.setPassword(tenant.key, "new")]);
        expect(await world.store.findTenant(tenant.id)).toMatchObject({ tier: "pro", passwordHash: "new" });
      });
    });
  });
}
