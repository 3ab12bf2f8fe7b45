import { type Clock, sleep } from "../../../lib/clock.ts";
import type { Random } from "../../../lib/random.ts";
import type { Account } from "../rig/account.ts";
import type { Ledger, RecordTally } from "../rig/ledger.ts";
import type { Roaming } from "../rig/traffic.ts";
import type { NodesFigures } from "./figures.ts";
import type { TestNode } from "./nodes.ts";
import type { Outages } from "./outages.ts";
import type { DatabaseMishaps } from "./shared-database.ts";

/** What happens to nodes and their database, and what is expected of those that are left. */
export interface Mishaps {
  /** Two of the nodes at most, or what they stand on. */
  happen(victims: readonly TestNode[]): Promise<void>;
  /** Resolves when all that was on its way at a mishap has gone on, and every node listens. */
  whenOver(): Promise<void>;
}

export interface MishapsOptions {
  readonly database: DatabaseMishaps | null;
  readonly accounts: readonly Account[];
  readonly ledger: Ledger;
  readonly roaming: Roaming;
  readonly figures: NodesFigures;
  readonly outages: Outages;
  readonly random: Random;
  readonly clock: Clock;
  /** Told of what happens. */
  tell(text: string): void;
}

/** So long after the death of a node its deliveries have gone on; after one of the database, once it is back. */
export const takeoverMs = 25_000;
/** Nobody is declared dead before whoever declares it was in touch with the database for a whole lease. */
const inTouchAgainMs = 5_000;
/** When it is over that, it is still waited for. */
const patienceMs = 60_000;
const longestFreezeMs = 25_000;
const longestOutageMs = 5_000;
/** What a node had begun before it stood still may come so long after it goes on. */
const attemptMs = 11_000;
/** From so long a pause on a lease may run out on an attempt. */
const leaseLeftMs = 9_000;
/** What was sent before a mishap is read by then. */
const readByMs = 1_000;
const lookEveryMs = 50;
const cutsAtOnce = 5;
const killedStartingShare = 0.1;

export function createMishaps(options: MishapsOptions): Mishaps {
  const { database, accounts, ledger, roaming, figures, outages, random, clock, tell } = options;
  const underWay = new Set<Promise<void>>();
  /** By the monotonic clock: when all must have gone on. */
  let dueAt = 0;
  let count = 0;
  /** Starts wait for the database, and the next mishap of it for them. */
  let isDatabaseUp: Promise<unknown> = Promise.resolve();
  let starts: Promise<unknown> = Promise.resolve();

  const expectBy = (ms: number) => {
    dueAt = Math.max(dueAt, clock.monotonicMs() + ms);
  };

  function run(step: Promise<void>): void {
    const done = step
      .catch((error) => ledger.fault(`a mishap could not be ended: ${error instanceof Error ? error.message : error}`))
      .finally(() => underWay.delete(done));
    underWay.add(done);
  }

  /** Deliveries that had been answered may come again from here on. */
  async function beginNextLife(): Promise<void> {
    await sleep(clock, readByMs);
    ledger.life += 1;
  }

  /** @param measures whether the time it takes is told, if nothing else happens meanwhile */
  async function watchTakeover(left: readonly RecordTally[], measures: boolean): Promise<void> {
    const own = count;
    const since = clock.monotonicMs();
    for (;;) {
      const waiting = left.filter(({ concluded }) => concluded.size === 0).length;
      const now = clock.monotonicMs();
      if (waiting === 0) break;
      if (now > dueAt + patienceMs) {
        return ledger.fault(`${waiting} deliveries did not go on after a mishap`);
      }
      await sleep(clock, lookEveryMs);
    }
    const now = clock.monotonicMs();
    tell(`all that was on its way ${Math.round(now - since)} ms ago has gone on`);
    if (now > dueAt) ledger.fault(`deliveries went on ${Math.round(now - dueAt)} ms too late after a mishap`);
    if (measures && own === count && left.length > 0) figures.takeoverMs.push(now - since);
  }

  async function startAgain(node: TestNode): Promise<void> {
    await isDatabaseUp;
    if (random.chance(killedStartingShare)) {
      const start = node.start().catch(() => {});
      await Promise.race([start, sleep(clock, random.between(0, figures.restartMs.at(-1) ?? 0))]);
      await kill(node);
      figures.killedStarting += 1;
    }
    figures.restartMs.push(await node.start());
    tell(`${node.name} is back`);
  }

  async function kill(node: TestNode): Promise<void> {
    tell(`${node.name} is killed`);
    const port = await node.kill();
    if (port !== null) roaming.leave(port);
  }

  function killNodes(victims: readonly TestNode[]): void {
    figures.kills += victims.length;
    const left = ledger.onTheWay(accounts);
    expectBy(takeoverMs);
    run(watchTakeover(left, true));
    run(beginNextLife());
    const restarted = Promise.all(
      victims.map(async (node) => {
        await kill(node);
        await startAgain(node);
      }),
    );
    starts = Promise.all([starts, restarted]);
    run(restarted.then(() => {}));
  }

  async function freeze(victim: TestNode): Promise<void> {
    const ms = random.between(1_000, longestFreezeMs);
    figures.freezes += 1;
    const left = ledger.onTheWay(accounts);
    expectBy(takeoverMs);
    run(watchTakeover(left, false));
    run(beginNextLife());
    tell(`${victim.name} stands still for ${Math.round(ms)} ms`);
    // What it was about to write or to hear is late, and the server may have ended its connections.
    const goesOn = outages.begin();
    victim.freeze();
    await sleep(clock, Math.min(ms, leaseLeftMs));
    if (ms > leaseLeftMs) {
      ledger.mayOverlap = true;
      ledger.hasStoodStill = true;
      await sleep(clock, ms - leaseLeftMs);
    }
    victim.thaw();
    goesOn();
    tell(`${victim.name} goes on`);
    // What it had under way when it stood still may be made again by now, from here or from elsewhere.
    ledger.life += 1;
    run(beginNextLife());
    if (ms <= leaseLeftMs) return;
    figures.longFreezes += 1;
    await sleep(clock, attemptMs);
    ledger.mayOverlap = false;
  }

  async function killDatabase({ kill, start }: DatabaseMishaps): Promise<void> {
    await starts;
    figures.databaseKills += 1;
    const left = ledger.onTheWay(accounts);
    const { promise, resolve } = Promise.withResolvers<void>();
    isDatabaseUp = promise;
    expectBy(longestOutageMs + patienceMs);
    run(beginNextLife());
    tell("the database is killed");
    const isOver = outages.begin();
    await kill();
    await sleep(clock, random.between(0, longestOutageMs));
    await start();
    isOver();
    tell("the database is back");
    resolve();
    dueAt = 0;
    expectBy(takeoverMs + inTouchAgainMs);
    await watchTakeover(left, false);
  }

  async function cut({ cut }: DatabaseMishaps): Promise<void> {
    const left = ledger.onTheWay(accounts);
    tell(`${cutsAtOnce} connections are cut`);
    const isOver = outages.begin();
    for (let n = 0; n < cutsAtOnce; n++) {
      figures.cuts += 1;
      cut(random.chance(0.5) ? "request" : "answer");
      await sleep(clock, random.between(0, lookEveryMs));
    }
    isOver();
    expectBy(takeoverMs + inTouchAgainMs);
    await watchTakeover(left, false);
  }

  return {
    async happen(victims) {
      count += 1;
      const [first] = victims;
      const kinds = ["kill", "kill", "freeze", ...(database ? ["database", "cut"] : [])] as const;
      const kind = random.pick(kinds as unknown as readonly [(typeof kinds)[number], ...(typeof kinds)[number][]]);
      if (kind === "kill" || first === undefined || first.port === null) killNodes(victims);
      else if (kind === "freeze") run(freeze(first));
      else if (kind === "cut" && database) run(cut(database));
      else if (database) run(killDatabase(database));
    },
    async whenOver() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}
