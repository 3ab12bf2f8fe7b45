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
  /** Something begins, as soon as there is a node or a database that it can happen to. */
  happen(): Promise<void>;
  /** A node is killed, and stays away until others have taken over. */
  die(): Promise<void>;
  /** Resolves when all that was on its way at a mishap has gone on, and every node listens. */
  whenOver(): Promise<void>;
}

export interface MishapsOptions {
  /** Those that it may happen to; others are spared, so that somebody is there who takes over. */
  readonly victims: readonly TestNode[];
  readonly database: DatabaseMishaps | null;
  readonly accounts: readonly Account[];
  readonly ledger: Ledger;
  readonly roaming: Roaming;
  readonly figures: NodesFigures;
  readonly outages: Outages;
  readonly random: Random;
  readonly clock: Clock;
  /** For a machine that does other things as well: so much later all may go on. */
  readonly graceMs: number;
  /** Told of what happens. */
  tell(text: string): void;
}

/** So long after the death of a node its deliveries have gone on; after one of the database, once it is back. */
export const takeoverMs = 25_000;
/** Nobody is declared dead before whoever declares it was in touch with the database for a whole lease. */
const inTouchAgainMs = 5_000;
/** When it is over that, it is still waited for. */
const patienceMs = 60_000;
/** Of the pauses some end before a lease can have run out on anything, and some after. */
const shortFreezeMs = 8_000;
const longestFreezeMs = 25_000;
const longestOutageMs = 5_000;
/** What a node had begun before it stood still may come so long after it goes on. */
const attemptMs = 11_000;
/** From so long a pause on a lease may run out on an attempt. */
const leaseLeftMs = 9_000;
/** What was sent before a mishap is read by then. */
const readByMs = 1_000;
const lookEveryMs = 50;
/** When a look comes so late, the machine had no time for the nodes either. */
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
  /** Killed and not back, or standing still. */
  const away = new Set<TestNode>();
  /** By the monotonic clock: when all must have gone on. */
  let dueAt = 0;
  let isDatabaseDown = false;
  let longFreezes = 0;
  let count = 0;
  /** Starts wait for the database, and the next mishap of it for them. */
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
   * Deliveries that had been answered may come again from here on. Whoever was killed starts after it: it takes back at once
   * what it owned before.
   */
  async function beginNextLife(): Promise<void> {
    await sleep(clock, readByMs);
    ledger.life += 1;
  }

  /** @param measures whether the time it takes is told, if nothing else happens meanwhile */
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

  /** @param staysAway until what was on its way has gone on by others; otherwise it is started at once */
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
    // What it was about to write or to hear is late, and the server may have ended its connections.
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
    // What it had under way when it stood still may be made again by now, from here or from elsewhere.
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
    // From here on: another crash must not come while this one waits.
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
      // One crash of the database at a time.
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
        // One at a time: the next mishap needs somebody to happen to.
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
