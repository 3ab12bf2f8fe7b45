import { byAccount } from "../../../../src/domain/audit.ts";
import { DomainError } from "../../../../src/domain/errors.ts";
import type { Tenant, Tier } from "../../../../src/domain/tenant.ts";
import type { Clock } from "../../../../src/lib/clock.ts";
import { createRandom, type Random } from "../../../../src/lib/random.ts";
import type { Vault } from "../../../../src/lib/vault.ts";
import { leaseMs } from "../../../../src/store/postgres/nodes.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { newTenant } from "../../../support/store-factory.ts";
import type { HistoryCounts } from "./counts.ts";
import { createCustomer } from "./customer.ts";
import { calendar, createIncarnation, type Incarnation } from "./incarnation.ts";
import { type Behaviour, createModelProcessor, type Fault, type ModelProcessor } from "./model-processor.ts";
import { ownAccountOnly } from "./own-account.ts";
import { type AccountLock, nextTurn, type SimulatedStore } from "./simulated-store.ts";

/** What is left when a history is over, for the invariants. */
export interface HistoryEnd {
  readonly seed: number;
  readonly model: ModelProcessor;
  readonly tenantKey: number;
  readonly accountKey: number;
  readonly endedAt: number;
  readonly samples: readonly Sample[];
  /** Failures of the program itself. */
  readonly unexpected: readonly string[];
  readonly counts: HistoryCounts;
  readonly isDeleted: boolean;
  /** What the program has forgotten in between, because it was put back to a backup. */
  readonly lost: { readonly from: number; readonly to: number; readonly wasVerified: boolean } | null;
}

/** The paid plan that could be used from a moment on; null: none. Kept apart from the store's own record of it. */
export interface Sample {
  readonly at: number;
  readonly tier: Tier | null;
}

export interface HistoryDeps {
  simulated: SimulatedStore;
  vault: Vault;
  /** The store takes its time from the history that is under way. */
  clockOf: { history: Clock };
}

export const prices = { free: 0, pro: 1_500_000, business: 6_000_000, enterprise: 0 } as const;

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** Two years, and then six quiet weeks in which nothing goes wrong any more. */
const lengthMs = 730 * dayMs;
const quietMs = 45 * dayMs;

/**
 * One account over two years of months: its owner pays, upgrades, changes cards, goes away and comes back; the processor
 * and the network fail in every way that the seam knows, and the program crashes before and after its calls.
 */
export async function runHistory(seed: number, { simulated, vault, clockOf }: HistoryDeps): Promise<HistoryEnd> {
  const { nodes } = simulated;
  const random = createRandom(seed);
  // Any day of any month, often close to a month's end; leap years among them.
  const startAt = startOf(random);
  const clock = createFakeClock(startAt);
  clockOf.history = clock;
  const counts: HistoryCounts = {
    charges: 0,
    declines: 0,
    crashes: 0,
    faults: 0,
    refunds: 0,
    upgrades: 0,
    deletions: 0,
    suspensions: 0,
    restores: 0,
  };
  const isQuiet = () => clock.now() > startAt + lengthMs;

  // ---------------------------------------------------------------- the world

  /** What should never happen at all. */
  const unexpected: string[] = [];
  const agenda: { at: number; action: () => void }[] = [];
  function later(delayMs: number, action: () => void): () => void {
    const entry = { at: clock.now() + delayMs, action };
    agenda.push(entry);
    return () => void (agenda.includes(entry) && agenda.splice(agenda.indexOf(entry), 1));
  }
  let underWay = 0;

  /** Waits for the world's clock inside a call, during which other things happen. */
  const travel = (): Promise<void> =>
    isQuiet() || !random.chance(0.1) ? Promise.resolve() : passTime(random.between(1, 50_000));

  function passTime(ms: number): Promise<void> {
    underWay -= 1;
    return new Promise((resolve) => {
      later(ms, () => {
        underWay += 1;
        resolve();
      });
    });
  }

  const faultShare = random.pick([0, 0.02, 0.1, 0.3]);
  function fault(): Fault {
    if (isQuiet() || !random.chance(faultShare)) return "none";
    counts.faults += 1;
    return random.pick(["lost_request", "lost_answer", "late", "busy", "broken", "operator"]);
  }

  let wantsDecline = random.between(0, 3);
  function mood(): Behaviour {
    if (isQuiet()) return "pays";
    wantsDecline -= 1;
    if (wantsDecline === -1) return "declines";
    const luck = random.next();
    if (luck < 0.78) return "pays";
    if (luck < 0.9) return "declines";
    if (luck < 0.92) return "refused";
    return luck < 0.96 ? "asks" : "waits";
  }

  const model = createModelProcessor({
    random,
    now: () => clock.now(),
    fault,
    travel,
    later: (action) => later(random.between(1, 5) * minuteMs, action),
    mood,
  });

  // ---------------------------------------------------------------- the program, and its crashes

  let crashIn = random.between(3, 40);
  function diesAt(): boolean {
    if (isQuiet()) return false;
    crashIn -= 1;
    if (crashIn > 0) return false;
    crashIn = random.between(20, 400);
    return true;
  }

  /** A backup is taken, life goes on, and the server is put back to it. */
  let lost: HistoryEnd["lost"] = null;
  let isBeingRestored = false;
  function backUp(): void {
    // Before a card was verified, only an open verification has the program ask about the pages that it has forgotten.
    const isWaitingForCard = own.openToken() !== null;
    const isToBeFound = own.isVerified() || isWaitingForCard;
    if (programs.every((program) => program === null) || !isToBeFound || own.tenant() === null) {
      later(5 * dayMs, backUp);
      return;
    }
    const takenAt = clock.now();
    const wasVerified = own.isVerified();
    const putBackAfterMs = random.between(1, 45) * dayMs;
    underWay += 1;
    const backedUp = simulated.backUp({ tenantKey, accountKey: own.accountKey() });
    void backedUp.then((putBackRows) => {
      underWay -= 1;
      later(putBackAfterMs, () => putBackLater({ takenAt, wasVerified }, putBackRows));
    });
  }

  function putBackLater(backup: { takenAt: number; wasVerified: boolean }, putBackRows: () => Promise<void>): void {
    if (programs.every((program) => program === null)) {
      later(60 * minuteMs, () => putBackLater(backup, putBackRows));
      return;
    }
    counts.restores += 1;
    isBeingRestored = true;
    for (const program of programs) program?.crash();
    // Once nothing of what it was doing is under way in the store any more.
    later(1, () => {
      underWay += 1;
      // What the store has kept of the tenant is of the time after the backup: what changes it in any case has it read anew.
      const putBackNow = putBackRows()
        .then(() => nodes[0].endAllSessions(tenantKey))
        .catch((error: unknown) => void unexpected.push(String(error)));
      void putBackNow.then(() => {
        underWay -= 1;
        lost = { from: backup.takenAt, to: clock.now(), wasVerified: backup.wasVerified };
        isBeingRestored = false;
        for (const [node] of nodes.entries()) later(random.between(0, 3) * dayMs, () => start(node));
      });
    });
  }

  /** What runs at each node; null while it is down. */
  const programs: (Incarnation | null)[] = nodes.map(() => null);
  const own = ownAccountOnly(simulated);

  function start(node: number): void {
    // Before the program was put back to a backup it was already to be started again.
    if (programs[node] || isBeingRestored) return;
    const onFailure = (error: unknown) => void unexpected.push(String(error));
    let lock: AccountLock | null = null;
    async function loseLock(): Promise<void> {
      underWay += 1;
      await lock?.lose().catch(onFailure);
      underWay -= 1;
    }
    const program = createIncarnation({
      store: own.over(nodes[node] ?? nodes[0]),
      lockOf(life) {
        lock = simulated.lock({ life, clock: { ...clock, after: later }, onFailure });
        return lock;
      },
      processor: model.processor,
      clock,
      vault,
      prices,
      diesAt,
      onFailure,
      onCrash() {
        counts.crashes += 1;
        programs[node] = null;
        if (nodes.length > 1) later(leaseMs, () => void loseLock());
        if (isBeingRestored) return;
        // Mostly it is back at once; sometimes it misses a month's end.
        later(random.chance(0.1) ? random.between(1, 6) * dayMs : random.between(0, 90) * 1000, () => start(node));
      },
      underWay: (change) => {
        underWay += change;
      },
      ...(nodes.length > 1 && {
        travel() {
          if (isQuiet() || !random.chance(0.03)) return Promise.resolve();
          const ms = random.between(1, 50_000);
          // Then it stood still, and another one has the account meanwhile.
          if (ms > leaseMs) later(leaseMs, () => void loseLock());
          return passTime(ms);
        },
      }),
    });
    // It may have died of its very first call, and then is to be started again already.
    programs[node] = program.isDead ? null : program;
  }

  // ---------------------------------------------------------------- the customer

  const created = await createAccount();
  const tenantKey = created.key;
  const samples: Sample[] = [];
  own.watch(tenantKey);
  await own.look();
  for (const [node] of nodes.entries()) start(node);
  if (created.tier !== "free" && created.enforcedTier !== null)
    act((p) => p.payments.requestCard(created, byAccount("192.0.2.1")));

  async function createAccount(): Promise<Tenant> {
    const kind = random.pick(["paid", "paid", "free", "vouched"]);
    const tier: Tier = kind === "free" ? "free" : random.pick(["pro", "business"]);
    const email = `customer${seed}@example.com`;
    return nodes[0].createTenant(
      {
        ...newTenant({ tier, email, loginEmail: tier === "free" ? null : email }),
        ...(kind === "paid" && {
          enforcedTier: null,
          verification: { accountId: `bill_${seed}_${random.next()}`, token: `token_${seed}_${random.next()}` },
        }),
      },
      clock.now(),
    );
  }

  function anyRunning(): Incarnation | null {
    const [one = null, ...others] = programs.filter((program) => program !== null);
    return one && others.length > 0 ? random.pick([one, ...others]) : one;
  }

  /** Something that a client asks of the program. Its answer may never come, and may be a refusal. */
  function act(action: (running: Incarnation) => Promise<unknown>): boolean {
    const running = anyRunning();
    if (!running) return false;
    underWay += 1;
    let counted = true;
    const done = () => {
      if (counted) underWay -= 1;
      counted = false;
    };
    action(running)
      .catch((error: unknown) => {
        if (!(error instanceof DomainError)) unexpected.push(String(error));
      })
      .finally(done);
    // The calls inside are counted by themselves.
    done();
    return true;
  }

  const customer = createCustomer({ random, clock, calendar, model, own, counts, act, later, isQuiet, seed });

  // Whatever crashes: in the end each account has a verified card.
  for (const days of [0, 1, 3, 6, 10, 14, 18]) {
    if (created.tier === "free")
      later(minuteMs + days * dayMs, () => customer.upgrade(random.pick(["pro", "business"])));
    else if (created.enforcedTier !== null) later(days * dayMs, customer.changeCard);
  }
  later(random.between(2, 60) * minuteMs, () => customer.visit(random.pick(["good", "any"])));
  for (const days of [1, 2, 5, 9, 12, 16, 20, 22, 24])
    later(days * dayMs + random.between(0, dayMs), () => customer.visit("good"));
  later(dayMs, customer.reactToTrouble);
  for (let n = random.between(3, 14); n > 0; n -= 1)
    later(random.between(25 * dayMs, lengthMs), random.pick(customer.habits));
  if (random.chance(0.4)) {
    const firstDay = random.chance(0.3) ? 0 : 30;
    later(random.between(firstDay * dayMs, firstDay === 0 ? dayMs : lengthMs - 60 * dayMs), backUp);
  }
  if (random.chance(0.15)) later(random.between(30 * dayMs, lengthMs), customer.remove);

  // ---------------------------------------------------------------- time passes

  /** Until nothing is under way that does not wait for the clock. */
  async function settle(): Promise<void> {
    for (let quietTurns = 0; quietTurns < 4; ) {
      await (underWay === 0 ? nextTurn() : simulated.goOn());
      const isQuietTurn = underWay === 0 && nodes.every((store) => store.oldestWaitingWriteMs() === 0);
      quietTurns = isQuietTurn ? quietTurns + 1 : 0;
    }
    await own.look();
    const tenant = own.tenant();
    const isUsable =
      tenant && own.isVerified() && tenant.operatorSuspendedAt === null && tenant.paymentSuspendedAt === null;
    const tier = isUsable ? tenant.enforcedTier : null;
    if (samples.at(-1)?.tier !== tier || samples.length === 0) samples.push({ at: clock.now(), tier });
  }

  const endAt = startAt + lengthMs + quietMs;
  for (let step = 0; ; step += 1) {
    if (step > 50_000) throw new Error("The history does not come to an end");
    await settle();
    const now = clock.now();
    const dueAt = programs.some((program) => program !== null) ? own.dueAt() : null;
    // What is due and not done waits for a call that is under way.
    const dueIn = dueAt === null ? endAt : dueAt > now ? dueAt : now + minuteMs;
    const next = Math.min(endAt, dueIn, ...agenda.map(({ at }) => at));
    if (next >= endAt) break;
    clock.advance(Math.max(0, next - now));
    const due = agenda.filter(({ at }) => at <= next).sort((a, b) => a.at - b.at);
    for (const entry of due) agenda.splice(agenda.indexOf(entry), 1);
    for (const { action } of due) action();
    wake();
  }
  for (const program of programs) program?.crash();

  function wake(): void {
    for (const program of programs) program?.payments.biller.wake();
  }

  Object.assign(counts, model.seen);
  return {
    seed,
    model,
    tenantKey,
    accountKey: own.accountKey(),
    endedAt: clock.now(),
    samples,
    unexpected,
    counts,
    isDeleted: own.tenant() === null,
    lost,
  };
}

function startOf(random: Random): number {
  const day = Date.UTC(2027, 0, 1) + random.between(0, 730) * dayMs;
  if (random.chance(0.6)) return day + random.between(0, dayMs - 1);
  return calendar.nextMonthEnd(day) + random.between(-13, 13) * 60 * minuteMs;
}
