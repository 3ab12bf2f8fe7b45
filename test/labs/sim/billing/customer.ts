import type { BillingCalendar } from "../../../../src/billing/calendar.ts";
import { byAccount } from "../../../../src/domain/audit.ts";
import { isHigherTier } from "../../../../src/domain/plans.ts";
import { refusalOfUpgrade } from "../../../../src/domain/standing.ts";
import type { Tenant, Tier } from "../../../../src/domain/tenant.ts";
import type { Clock } from "../../../../src/lib/clock.ts";
import type { Random } from "../../../../src/lib/random.ts";
import type { HistoryCounts } from "./counts.ts";
import type { Incarnation } from "./incarnation.ts";
import type { ModelProcessor } from "./model-processor.ts";
import type { OwnAccount } from "./own-account.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

export interface CustomerDeps {
  seed: number;
  random: Random;
  clock: Pick<Clock, "now">;
  calendar: BillingCalendar;
  model: ModelProcessor;
  own: OwnAccount;
  counts: HistoryCounts;
  /** Asks something of the program; false when it is down. */
  act(action: (running: Incarnation) => Promise<unknown>): boolean;
  later(delayMs: number, action: () => void): void;
  isQuiet(): boolean;
}

/** Whoever has the account, and the operator: they pay, decline, wait, come back, change their minds and leave. */
export function createCustomer({
  seed,
  random,
  clock,
  calendar,
  model,
  own,
  counts,
  act,
  later,
  isQuiet,
}: CustomerDeps) {
  const tenantNow = (): Tenant | null => own.tenant();

  function upgrade(tier: Tier): void {
    const tenant = tenantNow();
    if (!tenant) return;
    const login = tenant.tier === "free" ? { email: `customer${seed}@example.com`, passwordHash: "new" } : null;
    const ask = () =>
      act(async ({ payments, store: seen }) => {
        const fresh = await seen.findTenant(tenant.id);
        const refusal = fresh && refusalOfUpgrade(fresh, tier);
        if (!fresh || refusal) return;
        const result = await payments.upgrade(fresh, { tier, login, by: byAccount("192.0.2.1") });
        counts.upgrades += 1;
        if (result.kind === "paid" && isHigherTier(tier, result.tenant.enforcedTier ?? "free")) {
          throw new Error(`An upgrade to ${tier} was answered as paid, but ${result.tenant.enforcedTier} is in force`);
        }
      });
    ask();
    if (random.chance(0.3)) ask();
    if (random.chance(0.5)) later(random.between(1, 300) * 1000, ask);
  }

  /** Opens the payment page and deals with it as customers do. */
  function visit(manner: "good" | "any"): void {
    const token = own.openToken();
    if (token === null) return;
    act(async ({ payments }) => {
      const page = await payments.openPage(token);
      if (page.kind === "go") later(random.between(1, 20) * minuteMs, () => finishPage(page.url, manner));
      else if (page.kind === "unavailable" && !isQuiet()) later(page.retryAfterSeconds * 1000, () => visit(manner));
    });
  }

  function finishPage(url: string, manner: "good" | "any"): void {
    const reference = url.slice(url.lastIndexOf("/") + 1);
    if (url.startsWith("https://bank.example/")) {
      answerBank(reference);
      return;
    }
    // Everybody is declined once.
    const luck = model.seen.declines === 0 ? 0.9 : manner === "good" ? 0 : random.next();
    const email = model.transactions.get(reference)?.email ?? "";
    const card = () => model.newCard(email, `card${random.between(1, 3)}`, random.chance(0.9) ? "pays" : "declines");
    if (luck < 0.7) model.payPage(reference, card());
    else if (luck < 0.78) model.payPage(reference, null);
    else if (luck < 0.82) model.payPage(reference, card(), { kobo: 5_000 });
    else if (luck < 0.85) model.payPage(reference, card(), { currency: "USD" });
    else if (luck < 0.93) model.declinePage(reference);
    // Callbacks come before, after, twice, or never.
    for (let n = random.between(0, 2); n > 0; n -= 1)
      later(random.between(0, 10 * minuteMs), () => callBack(reference));
    if (luck >= 0.7 && random.chance(0.8)) later(random.between(1, 300) * minuteMs, () => visit("good"));
  }

  function answerBank(reference: string): void {
    // Some never answer, and some only after days.
    if (random.chance(0.2)) return;
    const yes = random.chance(0.8);
    model.confirm(reference, yes);
    if (random.chance(0.7)) later(random.between(0, minuteMs), () => callBack(reference));
  }

  const callBack = (reference: string) => act(({ payments }) => payments.lookUpSoon(reference));

  const changeCard = () => {
    const tenant = tenantNow();
    if (!tenant || tenant.tier === "free" || tenant.tier === "enterprise") return;
    act(async ({ payments }) => {
      await payments.requestCard(tenant, byAccount("192.0.2.1"));
      later(random.between(0, minuteMs), () => visit(random.pick(["good", "any"])));
    });
  };

  const remove = () =>
    act(async ({ store: seen, payments }) => {
      await seen.deleteTenant(own.tenantKey(), clock.now());
      counts.deletions += 1;
      payments.biller.wake();
    });

  const suspend = () => {
    act(({ store: seen }) => seen.suspend(own.tenantKey(), "operator", clock.now()));
    later(random.between(1, 40) * dayMs, resume);
  };
  function resume(): void {
    if (!act(({ store: seen }) => seen.resume(own.tenantKey(), "operator"))) later(dayMs, resume);
  }

  /** What a customer may do at any time. */
  const habits: readonly [() => void, ...(() => void)[]] = [
    () => upgrade("business"),
    () => upgrade("business"),
    () => upgrade("pro"),
    changeCard,
    changeCard,
    () => visit("any"),
    suspend,
    () =>
      act(({ store: seen }) => seen.setTier(own.tenantKey(), random.pick(["free", "pro", "business", "enterprise"]))),
    () => {
      const tenant = tenantNow();
      if (tenant) act(async ({ payments }) => payments.poll(tenant));
    },
    () => {
      const references = [...model.transactions.keys()];
      if (references.length > 0) callBack(random.pick(references as [string, ...string[]]));
    },
    // A page that was left behind in another tab, paid after all.
    () => {
      const old = [...model.transactions.values()].find(({ kind, state }) => kind === "page" && state === "waiting");
      if (old) finishPage(`https://pay.example/${old.reference}`, "good");
    },
    // In the same moment as a month's end, or right at its edges.
    () => {
      const at = calendar.nextMonthEnd(clock.now()) + random.between(-2, 2) * 1000;
      later(at - clock.now(), random.pick([() => upgrade("business"), changeCard, remove, suspend]));
    },
  ];

  /** Somebody whose charge fails does something about it, mostly. */
  function reactToTrouble(): void {
    const tenant = tenantNow();
    if (isQuiet()) return;
    if (tenant && (tenant.pastDueAt !== null || tenant.paymentSuspendedAt !== null)) {
      counts.suspensions += tenant.paymentSuspendedAt === null ? 0 : 1;
      if (random.chance(0.7)) changeCard();
    }
    for (const { reference, state } of model.transactions.values()) if (state === "confirming") answerBank(reference);
    later(random.between(2, 25) * dayMs, reactToTrouble);
  }

  return { upgrade, visit, changeCard, remove, habits, reactToTrouble };
}
