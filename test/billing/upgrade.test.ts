import { afterEach, beforeEach, expect, test } from "bun:test";
import { createBillingCalendar } from "../../src/billing/calendar.ts";
import { createCardVault } from "../../src/billing/card-vault.ts";
import { createPayments, type PaymentDeps } from "../../src/billing/payments.ts";
import type { PaymentProcessor } from "../../src/billing/processor.ts";
import type { UpgradeOrder } from "../../src/billing/upgrade.ts";
import { byAccount } from "../../src/domain/audit.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { createKeyedLock } from "../../src/lib/keyed-lock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createVault } from "../../src/lib/vault.ts";
import { everyJob } from "../../src/store/jobs.ts";
import { payingIn } from "../contract/billing/paying.ts";
import { sqliteBackend } from "../support/sqlite-backend.ts";
import { createWorld, type World } from "../support/store-factory.ts";

/** Requests at two servers, which found the account upgradable at the same moment and then wait for the same lease. */

let world: World;
beforeEach(async () => {
  world = await createWorld(sqliteBackend);
});
afterEach(() => world.end());

const vault = createVault(new Uint8Array(32));
const card = {
  ...{ token: "AUTH_1", email: "ada@x.io", signature: "SIG" },
  ...{ brand: "visa", last4: "4081", expMonth: "12", expYear: "2040" },
};

/** A server whose bank wants every charge confirmed. `sent`: the charges that it asked for. */
function serverOf(sent: string[]) {
  const processor: Pick<PaymentProcessor, "name" | "mode" | "lookUp" | "chargeSavedCard"> = {
    name: "sandbox",
    mode: "test",
    lookUp: async () => ({ kind: "not_found" }),
    chargeSavedCard: async ({ reference }) => {
      sent.push(reference);
      return { kind: "state", state: { kind: "confirmation", url: `https://bank.example/${reference}` } };
    },
  };
  const deps: Partial<PaymentDeps> = {
    ...{ store: world.store, clock: world.clock, log: silentLog, vault, jobs: everyJob, lock: createKeyedLock() },
    ...{ processor: processor as PaymentProcessor, calendar: createBillingCalendar("Africa/Lagos") },
    ...{ prices: { free: 0, pro: 1_500_000, business: 6_000_000, enterprise: 0 }, referenceSecret: new Uint8Array(32) },
    ...{ isPaused: () => false, baseUrl: () => "https://relay.example", announce() {}, onUnknownLookUp() {} },
  };
  return createPayments(deps as PaymentDeps);
}

async function answersTo(tenant: Tenant, orders: readonly Omit<UpgradeOrder, "by">[]) {
  const sent: string[] = [];
  const { upgrade } = serverOf(sent);
  const asked = orders.map((order) => upgrade(tenant, { ...order, by: byAccount("192.0.2.7") }));
  const ended = await Promise.allSettled(asked);
  return { sent, answers: ended.map((one) => (one.status === "fulfilled" ? one.value : one.reason.code)) };
}

test("the same upgrade that the bank wants confirmed is charged once, and both get its page", async () => {
  const { unverified, openPage, pay, tenantNow } = payingIn(() => world);
  const { tenant, accountKey } = await unverified();
  const { account } = await world.store.books(accountKey);
  const sealed = createCardVault(vault).seal(card, "sandbox:test", account.id);
  await pay(await openPage(accountKey), sealed);

  const order = { tier: "business", login: null } as const;
  const { answers, sent } = await answersTo(await tenantNow(tenant), [order, order]);
  expect(answers[0]).toMatchObject({ kind: "pending", confirm: true, tenant: { tier: "business" } });
  expect(answers[1]).toEqual(answers[0]);
  expect(sent).toHaveLength(1);
});

test("the same first upgrade opens one page for both, and another login is refused", async () => {
  const tenant = await world.tenant({ tier: "free" });
  const to = (email: string) => ({ tier: "pro", login: { email, passwordHash: email } }) as const;
  const { answers } = await answersTo(tenant, [to("ada@x.io"), to("Ada@x.io"), to("eve@x.io")]);
  expect(answers[0]).toMatchObject({ kind: "pending", confirm: false, tenant: { tier: "pro", email: "ada@x.io" } });
  expect(answers.slice(1)).toEqual([answers[0], "not_an_upgrade"]);
});
