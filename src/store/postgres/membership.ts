import { StartupError } from "../../domain/errors.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import type { DatabaseTime } from "../../lib/database-clock.ts";
import type { EndedNode } from "../node-lease.ts";
import { askTime } from "./ask-time.ts";
import { nodeSlots } from "./event-schema.ts";
import { DatabaseWentBack } from "./faults.ts";
import {
  type Beat,
  beat,
  hasExpired,
  join,
  leaseMs,
  type Node,
  type NodeDescription,
  rescueExpired,
  retire,
} from "./nodes.ts";
import type { Pool } from "./pool.ts";
import { type PatienceOptions, untilAnswered } from "./until-answered.ts";

/**
 * This process as a node: it keeps its lease, knows until when it may act on it, and rescues what dead nodes owned.
 *
 * It counts its time from when it *sent* a heartbeat, by its own monotonic clock, while the database counts from when it
 * *heard* it: so this node always gives up first.
 */
export interface Membership {
  /** Takes a slot. @throws StartupError when none becomes free, or when the database does not answer for long */
  start(): Promise<Node>;
  /** The node that this process is; null while it has to find out whether it still is one. */
  current(): Node | null;
  /** How long ago the last confirmed heartbeat was sent. */
  sinceBeatMs(): number;
  /** Whether an attempt may start: it will have ended before the lease does. */
  mayStart(): boolean;
  /** Whether what is kept in memory may be relied on: anything affected by a change that was answered has been dropped. */
  mayTrust(): boolean;
  /**
   * Something that the node has written under this incarnation is not there. From now on it starts nothing, and a heartbeat
   * finds out at once whether the node was declared dead. If it was not, the database has gone back to an earlier state, as
   * after a failover to a standby that lagged behind: then it gives its place up, and joins anew.
   */
  suspect(incarnation: number): void;
  /** Announces where it listens, with a heartbeat now and with all later ones. Never rejects. */
  announce(listener: string): Promise<void>;
  /** Releases what it owns, if the database can be reached. */
  stop(): Promise<void>;
}

export const heartbeatMs = 3_000;
/** An attempt takes at most 10 s, plus a second for what comes before and after. */
const longestAttemptMs = 11_000;
/** How long a node starts attempts after its last confirmed heartbeat was sent. */
const startsForMs = leaseMs - longestAttemptMs;
const rescueEveryMs = 1_000;
/** By how much the database's clock may get ahead before it counts as set forward: many times what it may drift. */
const leapMs = 1_000;
/** Pause after a failed heartbeat, or a join that found no slot. */
const retryMs = 1_000;

export interface MembershipOptions {
  /** Not used by anything that may hold it up for seconds. */
  pool: Pool;
  /** A connection on which a statement may take minutes; it is closed afterwards. */
  openPool(): Pool;
  clock: Clock;
  /** With the database, at the start. */
  patience: PatienceOptions;
  description: Omit<NodeDescription, "listener" | "keys">;
  /** Ids of the master keys that it has at the moment. @default none */
  keys?(): string;
  /**
   * Called when it was declared dead, or the database has gone back: attempts must be aborted, and what is held in memory
   * must be forgotten. It joins again.
   */
  onLost(): void;
  /** It is a node again, under another incarnation. */
  onJoined(node: Node): void;
  /**
   * Acts on everything that others have changed and committed before the call. Neither a heartbeat nor a join counts until
   * this is done: what relies on the lease relies on this, too.
   */
  heed(): Promise<void>;
  /** Called for each confirmed heartbeat, with when it was sent and answered, by the monotonic clock. */
  onBeat(beat: Beat, sentAt: number, heardAt: number): void;
  /** Called with nodes that it has rescued: what they owned is due. */
  onRescued(nodes: readonly EndedNode[]): void;
  onFailure(error: unknown): void;
}

export function createMembership(options: MembershipOptions): Membership {
  const { pool, openPool, clock, patience, description, keys = () => "" } = options;
  const { onLost, onJoined, heed, onBeat, onRescued, onFailure } = options;
  let node: Node | null = null;
  /** A place taken by a try that has not heeded all changes yet: the next one goes on with it, or each would take another. */
  let reserved: Node | null = null;
  /** See `suspect`. */
  let isSuspect = false;
  let listener = "";
  let stopping = false;
  /** By the monotonic clock: when the last confirmed heartbeat was sent. */
  let confirmedAt = Number.NEGATIVE_INFINITY;
  /** Since when every call to the database has been answered; null: the last one was not. */
  let inTouchSince: number | null = null;
  /** The most that the database's clock can have been ahead of the monotonic one when it was last heard. */
  let aheadMs = Number.POSITIVE_INFINITY;
  let cancelBeat = () => {};
  let cancelRescue = () => {};
  const patientPools = new Set<Pool>();
  let beating: Promise<void> = Promise.resolve();
  const underWay = new Set<Promise<void>>();

  /** Calls the database, and keeps track of whether it answers. */
  async function call<T>(run: () => Promise<T>): Promise<T> {
    const sentAt = clock.monotonicMs();
    try {
      const result = await run();
      inTouchSince ??= sentAt;
      return result;
    } catch (error) {
      inTouchSince = null;
      throw error;
    }
  }

  /** A database's clock that is set forward ends the leases of all: they are to have the time for a heartbeat. */
  function hear({ now, sentAt, heardAt }: DatabaseTime): void {
    if (inTouchSince !== null && now - heardAt > aheadMs + leapMs) inTouchSince = heardAt;
    aheadMs = now - sentAt;
  }

  const mayRescue = () => inTouchSince !== null && clock.monotonicMs() - inTouchSince >= leaseMs;

  /** For what takes as long as reading the whole queue does. A stop breaks it off. */
  async function patiently<T>(work: (pool: Pool) => Promise<T>): Promise<T> {
    const patient = openPool();
    patientPools.add(patient);
    try {
      return await work(patient);
    } finally {
      patientPools.delete(patient);
      await patient.close();
    }
  }

  /** Heartbeats go on meanwhile. */
  async function rescue(): Promise<EndedNode[]> {
    if (!(await call(() => hasExpired(pool)))) return [];
    hear(await call(() => askTime(pool, clock)));
    if (!mayRescue() || stopping) return [];
    return patiently(rescueExpired);
  }

  /** If it cannot be done now, it is done when the lease has run out. */
  async function giveUp({ incarnation }: Node): Promise<void> {
    try {
      const ended = await patiently((patient) => retire(patient, incarnation));
      // Otherwise it was declared dead just now.
      if (ended.length > 0) onFailure(new DatabaseWentBack());
    } catch (error) {
      onFailure(error);
    }
  }

  /** @returns null when there is none */
  async function takePlace(): Promise<Node | null> {
    const held = reserved;
    if (held !== null && (await call(() => beat(pool, held, listener, keys()))) !== null) return held;
    reserved = await call(() => join(pool, { ...description, listener, keys: keys() }));
    return reserved;
  }

  /** One try; only a node that has watched a full house for a whole lease may clear it. */
  async function tryToJoin(): Promise<Node | "full" | "crowded"> {
    const sentAt = clock.monotonicMs();
    let joined = await takePlace();
    if (joined === null && !mayRescue()) return "full";
    if (joined === null) {
      await rescue();
      joined = await takePlace();
    }
    if (joined === null) return "crowded";
    await call(heed);
    node = joined;
    reserved = null;
    isSuspect = false;
    confirmedAt = sentAt;
    return joined;
  }

  async function joinAnew(): Promise<void> {
    while (!stopping) {
      try {
        const joined = await tryToJoin();
        if (typeof joined !== "string") {
          onJoined(joined);
          return;
        }
      } catch (error) {
        onFailure(error);
      }
      await pause(retryMs);
    }
  }

  const sinceBeatMs = () => clock.monotonicMs() - confirmedAt;

  const pause = (ms: number) => sleep(clock, ms);

  async function heartbeat(): Promise<void> {
    const held = node;
    if (held === null) return;
    const sentAt = clock.monotonicMs();
    let nextMs = retryMs;
    try {
      const heard = await call(() => beat(pool, held, listener, keys()));
      const heardAt = clock.monotonicMs();
      if (heard) hear({ now: heard.now, sentAt, heardAt });
      // This too may find that the database has gone back.
      if (heard) await call(heed);
      if (heard && !isSuspect) {
        confirmedAt = sentAt;
        onBeat(heard, sentAt, heardAt);
        nextMs = Math.max(0, heartbeatMs - (clock.monotonicMs() - sentAt));
      } else if (!stopping) {
        node = null;
        onLost();
        if (heard) await giveUp(held);
        await joinAnew();
        nextMs = heartbeatMs;
      }
    } catch (error) {
      onFailure(error);
    }
    if (!stopping) cancelBeat = clock.after(nextMs, startBeat);
  }

  async function lookForDead(): Promise<void> {
    if (node !== null && mayRescue()) {
      try {
        const rescued = await rescue();
        if (rescued.length > 0) onRescued(rescued);
      } catch (error) {
        onFailure(error);
      }
    }
    if (!stopping) cancelRescue = clock.after(rescueEveryMs, startRescue);
  }

  /** One at a time. The next one is scheduled when the last one is done. */
  function startBeat(): void {
    const before = beating;
    beating = run(async () => {
      await before;
      cancelBeat();
      if (!stopping) await heartbeat();
    });
  }

  const startRescue = () => void run(lookForDead);

  function run(step: () => Promise<void>): Promise<void> {
    const done = step().finally(() => underWay.delete(done));
    underWay.add(done);
    return done;
  }

  return {
    async start() {
      for (;;) {
        const joined = await untilAnswered(patience, tryToJoin);
        if (joined === "crowded") {
          throw new StartupError(
            `All ${nodeSlots} places for nodes on this database are taken. Try: stop one of them, or wait until the lease ` +
              "of one that was killed has run out.",
          );
        }
        if (joined !== "full") {
          cancelBeat = clock.after(heartbeatMs, startBeat);
          cancelRescue = clock.after(rescueEveryMs, startRescue);
          return joined;
        }
        await pause(retryMs);
      }
    },
    current: () => node,
    sinceBeatMs,
    mayStart: () => node !== null && !isSuspect && !stopping && sinceBeatMs() < startsForMs,
    mayTrust: () => node !== null && !isSuspect && sinceBeatMs() < leaseMs,
    suspect(incarnation) {
      if (node?.incarnation !== incarnation || isSuspect || stopping) return;
      isSuspect = true;
      startBeat();
    },
    async announce(text) {
      listener = text;
      startBeat();
      await beating;
    },
    async stop() {
      stopping = true;
      cancelBeat();
      cancelRescue();
      for (const patient of patientPools) void patient.close();
      await Promise.all(underWay);
      const held = node ?? reserved;
      node = null;
      reserved = null;
      if (held !== null) await retire(pool, held.incarnation).catch(onFailure);
    },
  };
}
