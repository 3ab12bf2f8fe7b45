import { expect, test } from "bun:test";
import { type Clock, systemClock } from "../../../src/lib/clock.ts";
import type { OpenedStore } from "../../../src/store/opened.ts";
import { dueAccountsText, planDaysText } from "../../../src/store/postgres/billing.ts";
import { createBillingLock } from "../../../src/store/postgres/billing-lock.ts";
import { booksText } from "../../../src/store/postgres/billing-rows.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { monthEnd, newCard, newCharge, newIds, newInvoice, payingIn, payment } from "../../contract/billing/paying.ts";
import { until } from "../../support/api-server.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { startMonthEnd } from "../../support/month-end.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { createWorld } from "../../support/store-factory.ts";

/** Races are lost one time in some. */
const times = 8;

describeWithPostgres("payments at several nodes", () => {
  const postgres = usePostgres();

  async function openNode(url: string, clock: Clock): Promise<OpenedStore> {
    const opened = await openPostgresStore({ url, clock, durability: "waived" });
    postgres.cleanUpFirst(() => opened.store.close());
    return opened;
  }

  /** Accounts that pay at one node, and another node. */
  async function twoNodes() {
    const url = await postgres.migrated();
    const world = await createWorld({
      name: "PostgreSQL",
      open: async ({ clock }) => ({
        ...(await openNode(url, clock)),
        reopen: () => openNode(url, clock),
        count: async () => ({}),
        edit: async () => {},
        async remove() {},
      }),
    });
    const other = await openNode(url, world.clock);
    const paying = payingIn(() => world);
    return {
      ...paying,
      world,
      pool: postgres.pool(url),
      locks: [world.billingLock, other.billingLock] as const,
      /** The same at both, at once. */
      both: <T>(act: (store: OpenedStore["store"]) => Promise<T>): Promise<[T, T]> =>
        Promise.all([act(world.store), act(other.store)]),
    };
  }

  test("a month's end is charged once, by two billers that do not wait for each other", async () => {
    const url = await postgres.migrated();
    const [one, other] = [await openNode(url, systemClock), await openNode(url, systemClock)];
    const world = await startMonthEnd({
      accounts: 30,
      chargesPerSecond: Number.POSITIVE_INFINITY,
      chargeMs: 50,
      stores: [one.store, other.store],
    });
    const billers = [world.begin(), world.begin({ over: other.store })].map(({ biller }) => biller);
    for (const biller of billers) biller.start();
    await until(
      () => world.charged.length,
      (charged) => charged >= 30,
    );
    await Promise.all(billers.map((biller) => biller.whenIdle()));
    await Promise.all(billers.map((biller) => biller.stop()));
    expect([...(await world.order())].sort((a, b) => a - b)).toEqual(world.keys);
    for (const key of world.keys) expect((await world.store.books(key)).invoices).toEqual([]);
  }, 120_000);

  test("of two reports about one page one counts, and one card is kept", async () => {
    const { unverified, openPage, both, world, now, books } = await twoNodes();
    for (let i = 0; i < times; i++) {
      const { accountKey } = await unverified();
      const { reference } = await openPage(accountKey);
      const settled = await both((store) =>
        store.settleVerification(reference, newCard("SIG"), payment, monthEnd, now()),
      );
      expect(settled.map(({ kind }) => kind).toSorted()).toEqual(["applied", "known"]);
      const { card, cardsToForget, charges } = await books(accountKey);
      expect({ card, cardsToForget, charges }).toMatchObject({
        card: { refused: false },
        cardsToForget: [],
        charges: [],
      });
      expect((await world.store.planDays(accountKey)).periods).toHaveLength(1);
    }
  });

  test("an account is opened once, and its verification", async () => {
    const { world, both, now } = await twoNodes();
    for (let i = 0; i < times; i++) {
      const tenant = await world.tenant({ tier: "free" });
      const [one, other] = await both((store) =>
        store.openVerification(tenant.key, newIds(), { tier: "pro", login: null }, now()),
      );
      expect(one.verification).toEqual(other.verification);
    }
  });

  test("a login is given to one of two who ask for it with their upgrades", async () => {
    const { world, both, now } = await twoNodes();
    for (let i = 0; i < times; i++) {
      const tenants = [await world.tenant({ tier: "free" }), await world.tenant({ tier: "free" })];
      const login = { email: `ada${i}@x.io`, passwordHash: "h2" };
      const asked = await both(async (store) => {
        const tenant = tenants.pop();
        return store.openVerification(tenant?.key ?? 0, newIds(), { tier: "pro", login }, now()).then(
          () => "given",
          ({ code }) => code,
        );
      });
      expect(asked.toSorted()).toEqual(["email_taken", "given"]);
    }
  });

  test("a month's end is dealt with once, sent once and paid once", async () => {
    const { verified, world, both, now, books } = await twoNodes();
    for (let i = 0; i < times; i++) {
      const { accountKey } = await verified();
      await both((store) => store.endMonth(accountKey, newInvoice("subscription", [1, 2]), monthEnd + 1, now()));
      const { invoices } = await books(accountKey);
      expect(invoices).toHaveLength(1);
      const prepared = await both((store) => store.prepareAttempt(invoices[0]?.key ?? 0, newCharge(), now()));
      const [charge] = prepared.filter((one) => one !== null);
      expect(prepared.filter((one) => one === null)).toHaveLength(1);
      const reference = charge?.reference ?? "";
      const sent = await both((store) =>
        store.markSent(reference, { lookUpAt: now() + 60_000, resendAt: now() + 120_000 }, now()),
      );
      expect(sent.toSorted()).toEqual([false, true]);
      const settled = await both((store) => store.settleCharge(reference, payment, now()));
      expect(settled.map(({ kind }) => kind).toSorted()).toEqual(["applied", "known"]);
      expect((await world.store.planDays(accountKey)).invoiced).toEqual(
        new Map([
          [1, "paid"],
          [2, "paid"],
        ]),
      );
    }
  });

  test("of two upgrades one is charged", async () => {
    const { verified, both, now } = await twoNodes();
    for (let i = 0; i < times; i++) {
      const { accountKey } = await verified();
      const orders = await both((store) =>
        store.prepareUpgrade(
          accountKey,
          { invoice: newInvoice("upgrade", []), charge: newCharge(), tier: "business", login: null },
          now(),
        ),
      );
      expect(orders.filter((order) => order !== null)).toHaveLength(1);
    }
  });

  test("what is done to a tenant, and to its books, comes one after the other", async () => {
    const { verified, charged, world, both, now, books } = await twoNodes();
    for (let i = 0; i < times; i++) {
      const { tenant, accountKey } = await verified();
      const { charge } = await charged(accountKey);
      const deeds = [
        () => world.store.settleCharge(charge.reference, payment, now()),
        () => world.store.setTier(tenant.key, "business"),
        () => world.store.suspend(tenant.key, "operator", now()),
        () => world.store.openVerification(tenant.key, newIds(), null, now()),
        () => world.store.lookUpSoon(charge.reference, now()),
        () => world.store.deleteTenant(tenant.key, now()),
      ];
      const ended = await Promise.allSettled([
        both(async (store) => store.books(accountKey)),
        ...deeds.map((act) => act()),
      ]);
      for (const one of ended) if (one.status === "rejected") expect(one.reason.code).toBe("account_gone");
      const { account, tenant: left, verification } = await books(accountKey);
      expect({ state: account.state, left, verification }).toEqual({
        state: "closing",
        left: null,
        verification: null,
      });
      const { periods } = await world.store.planDays(accountKey);
      expect(periods.filter(({ endedAt }) => endedAt === null)).toEqual([]);
    }
  });

  test("one is at work for an account, at whatever node", async () => {
    const { verified, locks } = await twoNodes();
    const { accountKey } = await verified();
    let inside = 0;
    const together = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        locks[i % 2 === 0 ? 0 : 1].run(accountKey, async () => {
          inside += 1;
          const most = inside;
          await Bun.sleep(5);
          inside -= 1;
          return most;
        }),
      ),
    );
    expect(Math.max(...together)).toBe(1);
  });

  test("an account whose node has died is free when its lease has run out", async () => {
    const { verified, locks, pool } = await twoNodes();
    const { accountKey } = await verified();
    await pool.write(
      `update billing_account set leased_by = 999, leased_until = clock_timestamp() + interval '300 milliseconds'
        where key = $1::bigint`,
      [accountKey],
    );
    const [lease] = await pool.read<{ at: number }>(
      "select extract(epoch from leased_until)::float8 as at from billing_account where key = $1::bigint",
      [accountKey],
    );
    const [begun] = await locks[0].run(accountKey, () =>
      pool.read<{ at: number }>("select extract(epoch from clock_timestamp())::float8 as at"),
    );
    expect(begun?.at).toBeGreaterThan(lease?.at ?? Number.POSITIVE_INFINITY);
  });

  test("an account stays its holder's for as long as that takes, and is free at once afterwards", async () => {
    const { verified, pool } = await twoNodes();
    const { accountKey } = await verified();
    const { clock, advance, whenSet } = createManualClock();
    const node = () => ({ slot: 0, incarnation: 7, mark: "7@0", lanes: [], heeded: 0 });
    const failures: unknown[] = [];
    const lock = createBillingLock({ pool, clock, node, onFailure: (error) => failures.push(error) });
    const leased = async () => {
      const [row] = await pool.read<{ by: number | null; at: number | null }>(
        `select leased_by as by, extract(epoch from leased_until)::float8 as at from billing_account
          where key = $1::bigint`,
        [accountKey],
      );
      return row;
    };
    await lock.run(accountKey, async () => {
      const first = await leased();
      expect(first?.by).toBe(7);
      for (let renewals = 0, last = first?.at ?? 0; renewals < 3; renewals++) {
        const renewed = whenSet(5_000);
        advance(5_000);
        await renewed;
        const at = (await leased())?.at ?? 0;
        expect(at).toBeGreaterThan(last);
        last = at;
      }
    });
    expect(await leased()).toEqual({ by: null, at: null });
    expect(failures).toEqual([]);
  });

  const ofAccount = "card_verification_open saved_card_by_account charge_unfinished invoice_open plan_period_open";

  test.each([
    ["the books", booksText, "1", `billing_account_pkey tenant_pkey ${ofAccount}`],
    ["what was held and invoiced", planDaysText, "1", "plan_period_by_account invoice_day_account_key_day_pk"],
    ["the accounts that are due", dueAccountsText, "1, 1", "billing_account_due"],
  ] as const)("%s: read in one statement, by index", async (_, text, values, indexes) => {
    const pool = postgres.pool(await postgres.migrated(), { size: 1 });
    await pool.write("set plan_cache_mode = force_generic_plan");
    await pool.write(`prepare asked as ${text}`);
    const rows = await pool.read<Record<string, string>>(`explain execute asked(${values})`);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    for (const index of indexes.split(" ")) expect(plan).toContain(`using ${index} `);
    expect(plan).not.toContain("Seq Scan");
  });
});
