import { describe, expect, test } from "bun:test";
import { changePeriod, withPeriod } from "../../src/domain/books-change.ts";
import type { Tenant, Tier } from "../../src/domain/tenant.ts";
import { tenantOf } from "../support/billing-factory.ts";
import { openBooks } from "../support/open-books.ts";

const at = 10_000;

describe("the record of plans", () => {
  test.each<[string, Partial<Tenant> | null, number | null, Tier | null, Tier | null]>([
    ["holds a plan from the first verified card on", {}, 0, null, "pro"],
    ["goes on with it", {}, 0, "pro", "pro"],
    ["goes from one to another", { enforcedTier: "business" }, 0, "pro", "business"],
    ["goes by the plan in force, and not by the one to come", { tier: "business" }, 0, "pro", "pro"],
    ["holds none before", {}, null, null, null],
    ["holds none that is free", { enforcedTier: "free" }, 0, "pro", null],
    ["holds none before the first one", { enforcedTier: null }, 0, null, null],
    ["holds none while the operator has suspended the account", { operatorSuspendedAt: 5 }, 0, "pro", null],
    ["holds none while a charge has", { paymentSuspendedAt: 5 }, 0, "pro", null],
    ["holds it while a charge is past due", { pastDueAt: 5 }, 0, "pro", "pro"],
    ["holds none of a deleted account", null, 0, "pro", null],
  ])("%s", (_, tenant, verifiedAt, held, after) => {
    const period = held && { key: 7, tier: held };
    const change = changePeriod({ account: { verifiedAt }, tenant: tenant && tenantOf(tenant), period }, at);
    expect<unknown>(change).toEqual(held === after ? null : { ends: period && 7, starts: after, at });
  });

  test("follows what the same change does to account and tenant", () => {
    const books = openBooks({ account: { verifiedAt: null }, tenant: tenantOf({ enforcedTier: null }), period: null });
    const change = { account: { verifiedAt: at }, tenant: { enforcedTier: "business" } } as const;
    expect(withPeriod(books, change, at)).toEqual({ ...change, period: { ends: null, starts: "business", at } });
  });

  test("stays out of a change that does nothing to it", () => {
    const change = { account: { creditKobo: 1 } };
    expect(withPeriod(openBooks(), change, at)).toBe(change);
  });
});
