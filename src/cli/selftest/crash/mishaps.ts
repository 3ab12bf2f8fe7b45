import { type Clock, sleep } from "../../../lib/clock.ts";
import { messageOf } from "../../../lib/error-message.ts";
import type { Random } from "../../../lib/random.ts";
import type { Account } from "../rig/account.ts";
import type { Ledger } from "../rig/ledger.ts";
import type { Roaming } from "../rig/traffic.ts";
import type { NodesFigures } from "./figures.ts";
import type { TestNode } from "./nodes.ts";
import type { Outages } from "./outages.ts";
import type { DatabaseMishaps } from "./shared-database.ts";

/** What happens to nodes and their database in a round, and what is expected of those that are left. */
export interface Mishaps {
  /** Starts a mishap as soon as there is a node or a database that it can happen to. */
  happen(): Promise<void>;
  /** Kills a node, which stays away until others have taken over. */
  die(): Promise<void>;
  /** Resolves when everything that was on its way during a mishap has continued, and every node listens. */
  whenOver(): Promise<void>;
}

export interface MishapsOptions {
  /** Nodes that mishaps may happen to; others are spared, so that there is always one to take over. */
  readonly victims: readonly TestNode[];
  readonly database: DatabaseMishaps | null;
  readonly accounts: readonly Account[];
  readonly ledger: Ledger;
  readonly roaming: Roaming;
  readonly figures: NodesFigures;
  readonly outages: Outages;
  readonly random: Random;
  readonly clock: Clock;
  /** Extra time in which everything may continue, for a machine that is busy with other things as well. */
  readonly graceMs: number;
  /** Called with a description of each thing that happens. */
  tell(text: string): void;
}

/** How long after the death of a node its deliveries must have continued; for a database, counted from its return. */
export const takeoverMs = 25_000;
/** No node declares another dead before it has itself been in touch with the database for a whole lease. */
const inTouchAgainMs = 5_000;
/** How much longer the test waits once that time is over. */
const patienceMs = 60_000;
/** Some pauses end before a lease can have run out on anything, others after. */
const shortFreezeMs = 8_000;
const longestFreezeMs = 25_000;
const longestOutageMs = 5_000;
/** How long after a node resumes, attempts that it had begun before the freeze may still arrive. */
const attemptMs = 11_000;
/** From this length on, a pause may make a lease run out on an attempt. */
const leaseLeftMs = 9_000;
/** By then, what was sent before a mishap has been read. */
const readByMs = 1_000;
const lookEveryMs = 50;
/** If a look comes this late, the machine had no time for the nodes either. */
const stallMs = 500;
const cutsAtOnce = 5;
const killedStartingShare = 0.1;
const stayingAwayShare = 0.3;

type Kind = "kill" | "short freeze" | "long freeze" | "database" | "cut";
const kindsOfNodes: readonly Kind[] = ["kill", "kill", "kill", "short freeze", "long freeze"];
const kindsOfDatabase: readonly Kind[] = ["database", "cut"];

export function createMishaps(options: MishapsOptions): Mishaps {
  const { victims, database, accounts, ledger, roaming, figures, outages, random, clock, graceMs, tell } = options;
  const underWay = new Set<Promise<void>>();
  /** Killed and not back yet, or frozen. */
  const away = new Set<TestNode>();
  /** By the monotonic clock: when everything must have continued. */
  let dueAt = 0;
  let isDatabaseDown = false;
  let longFreezes = 0;
  let count = 0;
  /** Starts wait for the database, and its next mishap waits for them. */
  let isDatabaseUp: Promise<unknown> = Promise.resolve();
  let starts: Promise<unknown> = Promise.resolve();

  const expectBy = (ms: number) => {
    dueAt = Math.max(dueAt, clock.monotonicMs() + ms);
  };

  function run(step: Promise<void>): void {
    const done = step
      .catch((error) => ledger.fault(`a mishap could not be ended: ${messageOf(error)}`))
      .finally(() => underWay.delete(done));
    underWay.add(done);
  }

  /**
   * From here on, deliveries that had been answered may come again. A killed node is restarted only after this, because it
   * immediately takes back what it owned before.
   */
  async function beginNextLife(): Promise<void> {
    await sleep(clock, readByMs);
    ledger.life += 1;
  }

  /** @param measures whether the time it takes is recorded, provided that nothing else happens meanwhile */
  async function watchTakeover(measures: boolean): Promise<void> {
    const left = ledger.onTheWay(accounts);
    const own = count;
    const since = clock.monotonicMs();
    let allowedMs = graceMs;
    for (let last = since; ; ) {
      const waiting = left.filter(({ concluded }) => concluded.size === 0).length;
      const now = clock.monotonicMs();
      if (now - last > stallMs) allowedMs += now - last;
      last = now;
      if (waiting === 0) break;
      if (!isDatabaseDown && now > dueAt + allowedMs + patienceMs) {
        return ledger.fault(`${waiting} deliveries did not go on after a mishap`);
      }
      await sleep(clock, lookEveryMs);
    }
    const now = clock.monotonicMs();
    const lateMs = Math.round(now - dueAt - allowedMs);
    tell(`all ${left.length} that were on their way ${Math.round(now - since)} ms ago have gone on`);
    if (!isDatabaseDown && lateMs > 0) ledger.fault(`deliveries went on ${lateMs} ms too late after a mishap`);
    if (measures && own === count && left.length > 0) figures.takeoverMs.push(now - since);
  }

  async function startAgain(node: TestNode): Promise<void> {
    await isDatabaseUp;
    if (random.chance(killedStartingShare)) {
      const start = node.start().catch(() => {});
      await Promise.race([start, sleep(clock, random.between(0, figures.restartMs.at(-1) ?? 0))]);
      await kill(node);
      await beginNextLife();
      figures.killedStarting += 1;
    }
    figures.restartMs.push(await node.start());
    away.delete(node);
    tell(`${node.name} is back`);
  }

  async function kill(node: TestNode): Promise<void> {
    tell(`${node.name} is killed`);
    const port = await node.kill();
    if (port !== null) roaming.leave(port);
  }

  /** @param staysAway until others have continued what was on its way; otherwise it is restarted immediately */
  function killNodes(killed: readonly TestNode[], staysAway: boolean): void {
    figures.kills += killed.length;
    expectBy(takeoverMs);
    const goneOn = watchTakeover(true);
    run(goneOn);
    for (const node of killed) {
      away.add(node);
      const isGone = kill(node);
      run(
        (async () => {
          await isGone;
          await beginNextLife();
          if (staysAway) await goneOn;
          const started = startAgain(node);
          starts = Promise.all([starts, started]);
          await started;
        })(),
      );
    }
  }

  async function freeze(victim: TestNode, ms: number): Promise<void> {
    figures.freezes += 1;
    expectBy(takeoverMs);
    run(watchTakeover(false));
    run(beginNextLife());
    tell(`${victim.name} stands still for ${Math.round(ms)} ms`);
    away.add(victim);
    // Whatever it was about to write or hear is late, and the database server may have closed its connections.
    const goesOn = outages.begin();
    victim.freeze();
    await sleep(clock, Math.min(ms, leaseLeftMs));
    const isLong = ms > leaseLeftMs;
    if (isLong) {
      longFreezes += 1;
      ledger.mayOverlap = true;
      ledger.hasStoodStill = true;
      await sleep(clock, ms - leaseLeftMs);
    }
    victim.thaw();
    goesOn();
    away.delete(victim);
    tell(`${victim.name} goes on`);
    // By now, what it had under way when it was frozen may be attempted again, by itself or by another node.
    ledger.life += 1;
    run(beginNextLife());
    if (!isLong) return;
    figures.longFreezes += 1;
    await sleep(clock, attemptMs);
    longFreezes -= 1;
    ledger.mayOverlap = longFreezes > 0;
  }

  async function killDatabase({ kill, start }: DatabaseMishaps): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    isDatabaseUp = promise;
    // Set here, because another database crash must not come while this one waits.
    isDatabaseDown = true;
    await starts;
    figures.databaseKills += 1;
    const goneOn = watchTakeover(false);
    tell("the database is killed");
    const isOver = outages.begin();
    await kill();
    await beginNextLife();
    await sleep(clock, random.between(0, longestOutageMs));
    await start();
    isOver();
    tell("the database is back");
    expectBy(takeoverMs + inTouchAgainMs);
    isDatabaseDown = false;
    resolve();
    await goneOn;
  }

  async function cut({ cut }: DatabaseMishaps): Promise<void> {
    tell(`${cutsAtOnce} connections are cut`);
    expectBy(takeoverMs + inTouchAgainMs);
    const goneOn = watchTakeover(false);
    const isOver = outages.begin();
    for (let n = 0; n < cutsAtOnce; n++) {
      figures.cuts += 1;
      cut(random.chance(0.5) ? "request" : "answer");
      await sleep(clock, random.between(0, lookEveryMs));
    }
    isOver();
    await goneOn;
  }

  async function free(): Promise<TestNode[]> {
    for (;;) {
      const found = victims.filter((node) => !away.has(node));
      if (found.length > 0) return found.sort(() => random.next() - 0.5);
      await sleep(clock, lookEveryMs);
    }
  }

  return {
    async happen() {
      // Only one database crash at a time.
      const kinds = [...kindsOfNodes, ...(database && !isDatabaseDown ? kindsOfDatabase : [])];
      const kind = random.pick(kinds as [Kind, ...Kind[]]);
      const [first, second] = kind === "database" || kind === "cut" ? [] : await free();
      count += 1;
      if (kind === "database" && database) run(killDatabase(database));
      else if (kind === "cut" && database) run(cut(database));
      else if (first && kind === "short freeze") run(freeze(first, random.between(1_000, shortFreezeMs)));
      else if (first && kind === "long freeze") run(freeze(first, random.between(leaseLeftMs, longestFreezeMs)));
      else if (first) {
        const both = second && random.chance(0.5) ? [first, second] : [first];
        // Only one node stays away at a time: the next mishap needs a victim.
        killNodes(both, random.chance(stayingAwayShare) && both.length + away.size < victims.length);
      }
    },
    async die() {
      const [first] = await free();
      count += 1;
      if (first) killNodes([first], true);
    },
    async whenOver() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}
