import { Database } from "bun:sqlite";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { byAccount } from "../../../../src/domain/audit.ts";
import { createRandom } from "../../../../src/lib/random.ts";
import type { Vault } from "../../../../src/lib/vault.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { createClients } from "./clients.ts";
import { createDisk } from "./disk.ts";
import { createHost } from "./host.ts";
import { createIdleChecks } from "./idle-checks.ts";
import { createFindings, type Findings } from "./invariants.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { createListener, type Listener } from "./listener.ts";
import { createLiveChecks } from "./live-checks.ts";
import { createNetwork, moods, type Network } from "./network.ts";
import { createPaceModel } from "./pace.ts";
import { createThrottleModel } from "./throttle.ts";

export interface HistoryCounts {
  events: number;
  attempts: number;
  crashes: number;
  stops: number;
  refusals: number;
  steps: number;
  replays: number;
  /** Records that were let go by a cancelled replay. */
  returned: number;
  messages: number;
  deletions: number;
}

/** What is left when a history is over, for the checks of the whole of it. */
export interface HistoryEnd {
  readonly seed: number;
  readonly client: Database;
  readonly ledger: Ledger;
  readonly network: Network;
  readonly findings: Findings;
  readonly scheduleMs: readonly number[];
  readonly endedAt: number;
  /** Deliveries that the program still holds in memory. */
  readonly held: number;
  /** Nothing crashed, and the disk was never in trouble. */
  readonly wasCalm: boolean;
  readonly counts: HistoryCounts;
}

export interface HistoryDeps {
  /** Holds an empty database with its witness (`witness.ts`). */
  template: string;
  /** An empty folder for this history. */
  dataDir: string;
  vault: Vault;
}

const minuteMs = 60_000;
const schedules: readonly [readonly number[], ...(readonly number[])[]] = [
  [500, 2_000],
  [1_000, 5_000, 30_000],
  [100, 100, 100, 100],
  [5_000, 60_000, 300_000],
  [],
];
/** Long after the last pause of every schedule. */
const quietMs = 15 * minuteMs;

/**
 * Some minutes of the whole way of events, from their acceptance to their last attempt, in a world in which receivers,
 * disk, clocks and the program itself fail, while accounts change their minds. Everything of the program is real but the
 * time, the network and the moments at which the disk commits. The same seed is the same history.
 */
export async function runHistory(seed: number, { template, dataDir, vault }: HistoryDeps): Promise<HistoryEnd> {
  copyFileSync(join(template, "postrider.db"), join(dataDir, "postrider.db"));
  const client = new Database(join(dataDir, "postrider.db"), { readonly: true });
  const random = createRandom(seed);
  const clock = createFakeClock(Date.UTC(2027, 0, 1) + random.between(0, 400 * 24 * 60) * minuteMs);
  const findings = createFindings();
  const ledger = createLedger(client);
  const throttle = createThrottleModel(clock, client);
  const disk = createDisk(random);
  const scheduleMs = random.pick(schedules);
  const webhookConcurrency = random.pick([1, 2, 3, 16]);
  // Seldom so slow that a backlog has to wait for its tokens.
  const pace = createPaceModel(clock, random.pick([null, null, 5, 40]));
  const lengthMs = random.between(1, 4) * minuteMs;
  const isQuiet = () => clock.monotonicMs() >= lengthMs;
  const later = (delayMs: number, action: () => void) => clock.after(delayMs, action);

  // ---------------------------------------------------------------- the world

  let steps = 0;
  let stepsBackMs = 0;
  let aheadMs = 0;
  const eagerShare = random.pick([0, 0, 0.05]);
  const network = createNetwork({
    clock,
    random,
    isQuiet,
    onSend: (request, sent) => live.sending(request, sent),
    onOutcome({ delivery: { tenantKey, eventId } }) {
      if (isQuiet() || !random.chance(eagerShare)) return;
      void clients.replayAtOnce(tenantKey, eventId, random.between(0, 3));
    },
  });
  const live = createLiveChecks({
    clock,
    client,
    ledger,
    findings,
    scheduleMs,
    webhookConcurrency,
    pace,
    throttle,
    underWay: network.underWay,
    steppedBackMs: () => stepsBackMs,
  });
  const idle = createIdleChecks({
    clock,
    client,
    findings,
    underWay: network.underWay,
    pace,
    throttle,
    steppedAheadMs: () => aheadMs,
  });
  /** After a while of which nothing is known, the program may still be in a pause that it takes after a failure. */
  let troubleUntil = 0;
  const expectTrouble = (forMs: number) => {
    troubleUntil = Math.max(troubleUntil, clock.monotonicMs() + forMs);
  };

  function stepClock(): void {
    const ms = random.pick([-3_600_001, -61_003, -2_001, -3, 7, 1_501, 59_009, 3_599_999]);
    steps += 1;
    clock.step(ms);
    if (ms < 0) {
      stepsBackMs -= ms;
    } else {
      aheadMs += ms;
      later(noticedAfterMs, () => {
        aheadMs -= ms;
      });
    }
  }

  function troubleDisk(): void {
    const kind = random.pick<Parameters<typeof disk.break>[0]>(["full", "full", "doubtful", "below_floor"]);
    disk.break(kind);
    later(random.pick([0, 10, 700, 3_000, 20_000]), () => {
      disk.mend();
      expectTrouble(failurePausesMs);
    });
  }

  let prunedAt = 0;
  const listeners: Listener[] = [];
  const host = createHost({
    dataDir,
    clock,
    random,
    vault,
    disk,
    network,
    findings,
    scheduleMs,
    webhookConcurrency,
    deliveryRates: pace.rates,
    isQuiet,
    watch: {
      beginning: live.beginning,
      settled: live.settled,
      publishing(tenantId, kind, data) {
        live.publishing(tenantId, kind, data);
        for (const listener of listeners) if (listener.account.id === tenantId) listener.published(kind, data);
      },
      pruned() {
        prunedAt = clock.monotonicMs();
      },
    },
    onEnd() {
      pace.forget();
      for (const listener of listeners) listener.cutOff();
      ledger.readBack();
      throttle.readBack();
    },
  });
  const clients = createClients({
    clock,
    random,
    ledger,
    throttle,
    network,
    act: host.act,
    onAttemptsAfterDeletion: (key) =>
      findings.broken("silenced", `attempts for account ${key} go on after its deletion`),
  });

  // ---------------------------------------------------------------- how it begins

  await host.start();
  for (let n = random.between(1, 3); n > 0; n -= 1) {
    const urls = Array.from({ length: 4 }, (_, i) => `https://receiver${i}.example/${i === 0 ? "shared" : n}`);
    for (const url of urls) network.setMood(url, random.chance(0.5) ? "good" : random.pick(moods));
    const registered = urls.slice(0, random.between(0, 3));
    host.act(
      ({ accounts }) =>
        accounts.createForOperator(
          {
            tier: "enterprise",
            name: "Test",
            email: `account${n}@example.com`,
            webhooks: registered.map((webhook_url) => ({ webhook_url, name: "", ordered: random.chance(0.4) })),
          },
          byAccount("192.0.2.1"),
        ),
      {
        answered({ tenant }) {
          const account = {
            key: tenant.key,
            id: tenant.id,
            urls,
            putsUnderWay: 0,
            hasPutsBeside: false,
            isChanging: false,
            isDeleted: false,
          };
          ledger.addAccount(account);
          listeners.push(createListener(account, random, findings));
        },
      },
    );
  }
  await host.whenIdle();

  const troubles = [stepClock, troubleDisk, host.stop, host.crash] as const;
  /** Bursts of what is done in one moment, at moments of which many coincide with answers. */
  for (let bursts = random.between(4, 14); bursts > 0; bursts -= 1) {
    later(random.between(0, lengthMs / 50) * 50 + random.pick([0, 0, 5, 10]), () => {
      for (let n = random.between(1, 6); n > 0; n -= 1) clients.doSomething();
    });
  }
  const mayFail = random.chance(0.8);
  for (let n = mayFail ? random.between(0, 4) : 0; n > 0; n -= 1) {
    later(random.between(0, lengthMs), () => random.pick(troubles)());
  }
  for (let n = random.between(0, 6); n > 0; n -= 1) {
    later(random.between(0, lengthMs), () => {
      const listener = listeners[random.between(0, listeners.length - 1)];
      if (host.program && listener && !listener.account.isDeleted) listener.toggle(host.program, clock.now());
    });
  }
  // More than the program loads or keeps for a webhook at once.
  if (random.chance(0.04)) {
    later(random.between(0, lengthMs), () => {
      const [account] = ledger.accounts;
      if (account && !account.isDeleted) clients.submit(account, random.between(70, 300), null);
    });
  }

  // ---------------------------------------------------------------- time passes

  let isQuietYet = false;
  const endMs = () => lengthMs + quietMs + stepsBackMs;
  for (let moments = 0; ; moments += 1) {
    if (moments > 50_000) throw new Error("The history does not come to an end");
    await host.whenIdle();
    if (disk.isTroubled) expectTrouble(failurePausesMs);
    if (host.program && clock.monotonicMs() > troubleUntil) idle.look();
    else idle.lookAway();
    if (isQuiet() && !isQuietYet) {
      isQuietYet = true;
      disk.mend();
      later(minuteMs, clients.resumeAll);
      later(2 * minuteMs, clients.resumeAll);
      continue;
    }
    const nextMs = Math.min(clock.nextTimerMs ?? quietMs, endMs() - clock.monotonicMs());
    if (clock.monotonicMs() >= endMs()) break;
    clock.advance(nextMs);
  }
  findings.expect(
    clock.monotonicMs() - prunedAt <= 2 * minuteMs,
    "awake",
    () => "what has outlived its use is not cleared up",
  );

  const held = await host.close();
  findings.expect(held !== null, "rest", () => "the program did not come back");
  for (const listener of listeners) listener.cutOff();
  const { crashes, stops, refusals } = host.counts;
  return {
    seed,
    client,
    ledger,
    network,
    findings,
    scheduleMs,
    endedAt: clock.now(),
    held: held ?? 0,
    wasCalm: crashes + stops + disk.seen.refusals + steps === 0,
    counts: {
      events: ledger.submissions.flatMap(({ tries }) => tries.flatMap(({ eventIds }) => eventIds)).length,
      attempts: network.all.length,
      crashes,
      stops,
      refusals,
      steps,
      replays: ledger.replayIds.length,
      returned: client.query<{ n: number }, []>("select coalesce(sum(returned), 0) as n from replay").get()?.n ?? 0,
      messages: listeners.reduce((sum, { seen }) => sum + seen.messages, 0),
      deletions: ledger.deletedAccounts.size,
    },
  };
}

/** A clock that was set ahead is noticed within a minute. */
const noticedAfterMs = 61_000;

/** The longest pause that a part of the program takes after a failure, and a little. */
const failurePausesMs = 5_500;
