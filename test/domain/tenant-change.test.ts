import { describe, expect, test } from "bun:test";
import type { Tenant, Tier } from "../../src/domain/tenant.ts";
import {
  isTaken,
  keeperOf,
  loginEmailOf,
  loginOfUpgrade,
  losesLogin,
  replacePassword,
  toEmail,
  toPassword,
  toPlanInForce,
  toSuspended,
  toTier,
} from "../../src/domain/tenant-change.ts";
import { tenantOf } from "../support/billing-factory.ts";

const now = 10_000;
/** Its key is 1. */
const tenant = tenantOf({ email: "Ada@Example.com" });
const ownAddress = { email: "Ada@Example.com", passwordHash: null };

describe("the login of an account", () => {
  test.each<[Tier, string | null]>([
    ["free", null],
    ["pro", "ada@example.com"],
    ["business", "ada@example.com"],
    ["enterprise", "ada@example.com"],
  ])("on %s is %p", (tier, loginEmail) => {
    expect(loginEmailOf(tier, tenant.email)).toBe(loginEmail);
  });

  test.each([
    ["nobody's", false, null, 1],
    ["its own", false, 1, 1],
    ["another's", true, 2, 1],
    ["another's, and the account is being made", true, 2, null],
    ["nobody's, and the account is being made", false, null, null],
  ])("that is %s is taken: %p", (_, expected, holder, tenantKey) => {
    expect(isTaken(holder, tenantKey)).toBe(expected);
  });

  const ordered = { email: "eve@example.com", passwordHash: "ordered" };
  test.each<[string, Tier, Tier | null, typeof ordered | null, ReturnType<typeof loginOfUpgrade>]>([
    ["what was ordered with it", "free", "pro", ordered, ordered],
    ["a free account's own address, if nothing is any more", "free", "pro", null, ownAddress],
    ["nothing else on a paid plan", "pro", "business", null, null],
    ["nothing else if it is a month's charge", "free", null, null, null],
  ])("is made by an upgrade: %s", (_, tier, targetTier, order, login) => {
    expect(loginOfUpgrade({ ...tenant, tier }, targetTier, order)).toEqual(login);
  });

  test("of another account is refused, with a tier and with a new address", () => {
    for (const decision of [toTier(tenant, "pro", 2), toEmail(tenant, "b@example.com", 2)]) {
      expect(decision).toMatchObject({ kind: "refused", error: { code: "email_taken" } });
    }
  });

  test.each<[string, Tier, object]>([
    ["a paid tier makes the address a login", "business", { loginEmail: "ada@example.com" }],
    ["a free one leaves a contact", "free", { loginEmail: null }],
  ])("%s, and is in force", (_, tier, login) => {
    expect(toTier(tenant, tier, null)).toEqual({ kind: "changed", change: { tier, enforcedTier: tier, ...login } });
  });

  test.each<[Tier, string | null]>([
    ["pro", "b@example.com"],
    ["free", null],
  ])("of an account on %s becomes %p with a new address", (tier, loginEmail) => {
    const change = { email: "B@example.com", loginEmail };
    expect(toEmail(tenantOf({ tier }), "B@example.com", 1)).toEqual({ kind: "changed", change });
  });

  const dayMs = 24 * 60 * 60 * 1000;
  test.each<[string, boolean, Tier | null, number | null, number | null]>([
    ["never verified a card", true, null, null, 5],
    ["was free before, and never verified one", true, "free", null, 5],
    ["asked for its plan less than a day ago", false, null, null, 6],
    ["has verified a card", false, "free", 3, 5],
    ["has nothing to verify", false, "free", null, null],
    ["has a plan that its operator vouches for", false, "pro", null, 5],
  ])("that %s goes to whoever asks for it: %p", (_, expected, enforcedTier, verifiedAt, askedAt) => {
    const holder = { key: 7, enforcedTier, verifiedAt, askedAt };
    expect(losesLogin(holder, dayMs + 5)).toBe(expected);
    expect(keeperOf(holder, dayMs + 5)).toBe(expected ? null : 7);
  });
});

describe("an upgrade that has come to nothing", () => {
  test.each<[string, Partial<Tenant>, object]>([
    ["was in force", {}, {}],
    ["was still to come", { tier: "business" }, { tier: "pro" }],
    ["was of a free account, which has no login", { enforcedTier: "free" }, { tier: "free", loginEmail: null }],
    ["was the first plan", { enforcedTier: null }, {}],
  ])("and %s changes %j", (_, given, change) => {
    expect(toPlanInForce(tenantOf(given))).toEqual(change);
  });
});

test.each([
  ["operator", now, { operatorSuspendedAt: now }],
  ["payment", now, { paymentSuspendedAt: now }],
  ["operator", null, { operatorSuspendedAt: null }],
  ["payment", null, { paymentSuspendedAt: null }],
] as const)("a suspension for the cause %s, since %p, is its own", (cause, at, change) => {
  expect<unknown>(toSuspended(cause, at)).toEqual(change);
});

describe("a password", () => {
  const account = tenantOf({ passwordHash: "old", sessionVersion: 4 });

  test("that is new ends every session", () => {
    expect(toPassword(account, "new")).toEqual({ passwordHash: "new", sessionVersion: 5 });
  });

  test.each([
    ["old", { passwordHash: "new", sessionVersion: 5 }],
    ["set before it", null],
  ])("that was verified against the hash %p is replaced: %j", (verified, change) => {
    expect<unknown>(replacePassword(account, verified, "new")).toEqual(change);
  });
});
