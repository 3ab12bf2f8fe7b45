import type { Change } from "../../domain/change.ts";
import type { Moment } from "../../domain/moment.ts";
import type { Clock } from "../../lib/clock.ts";
import type { DatabaseTime } from "../../lib/database-clock.ts";
import type { LivingNode, NodeLease, NodeLeaseListener } from "../node-lease.ts";
import { changeChannel, createChanges } from "./changes.ts";
import { createJobs, type SharedJobs, wakeChannel } from "./jobs.ts";
import type { Listener } from "./listener.ts";
import { createMembership, type MembershipOptions } from "./membership.ts";
import { listNodes, type Node } from "./nodes.ts";
import type { Pool } from "./pool.ts";
import { createStreamWatchers, type StreamWatchers } from "./stream-watchers.ts";
import { createWrites, type Writes } from "./writes.ts";

/** This process as one of several on a database: its place, what it hears from the others, and what it tells them. */
export interface OwnNode {
  readonly writes: Writes;
  readonly jobs: SharedJobs;
  readonly watchers: StreamWatchers;
  readonly lease: NodeLease;
  /** Null while it has no place. */
  current(): Node | null;
  /** Whether it has heard everything that others rely on. See `Membership`. */
  mayTrust(): boolean;
  /** See `Membership`. */
  suspect(incarnation: number): void;
  /** Something that was owned no longer is: tells whoever acts on the lease. */
  tellUnowned(): void;
  /** Takes a place. */
  join(): Promise<void>;
  /** From now on it is told immediately what it would find out at its next heartbeat. */
  listen(listener: Pick<Listener, "listen">): Promise<void>;
  /** Gives up the place and everything that it owned. */
  leave(): Promise<void>;
}

export interface OwnNodeOptions {
  pool: Pool;
  /** For heartbeats, and what they and those who announce changes wait for. */
  leasePool: Pool;
  /** See `MembershipOptions`. */
  openPool: MembershipOptions["openPool"];
  clock: Clock;
  machineClock: Clock;
  /** See `MembershipOptions`. */
  patience: MembershipOptions["patience"];
  moment(): Moment;
  description: MembershipOptions["description"];
  keys(): string;
  /** Concurrent rare transactions. */
  writesAtOnce: number;
  /** What it keeps in memory may be older than what others were told, and what it owned belongs to others. */
  onLost(): void;
  onJoined(node: Node): void;
  /** Ends and forgets what has to go before the authors of these changes are answered. */
  heed(changes: readonly Change[]): Promise<void>;
  /** Called at each confirmed heartbeat with the database's time. */
  onTime(time: DatabaseTime): void;
  onFailure(failure: { operation: string; error: unknown }): void;
}

export function createOwnNode(options: OwnNodeOptions): OwnNode {
  const { pool, leasePool, clock, machineClock, onTime } = options;
  const failed = (operation: string) => (error: unknown) => options.onFailure({ operation, error });
  let living: readonly LivingNode[] = [];
  /** When the lease that was lost was last confirmed, by the monotonic clock. */
  let inTouchUntil = 0;
  let listener: NodeLeaseListener = { lost() {}, rejoined() {}, confirmed() {}, rescued() {}, unowned() {} };
  const membership = createMembership({
    pool: leasePool,
    openPool: options.openPool,
    clock: machineClock,
    patience: options.patience,
    description: options.description,
    keys: options.keys,
    onLost() {
      inTouchUntil = machineClock.monotonicMs() - membership.sinceBeatMs();
      options.onLost();
      watchers.doubt();
      listener.lost();
    },
    onJoined(node) {
      options.onJoined(node);
      void watchers.look();
      listener.rejoined(machineClock.monotonicMs() - inTouchUntil);
      listener.unowned();
    },
    heed: () => changes.catchUp(),
    onBeat(beat, sentAt, heardAt) {
      onTime({ now: beat.now, sentAt, heardAt });
      const hasLeft = ({ incarnation }: LivingNode) => !beat.living.some((node) => node.incarnation === incarnation);
      const anyHasLeft = living.some(hasLeft);
      living = beat.living;
      void jobs.seek();
      listener.confirmed();
      // What that node gave back may be long overdue, and nobody else looks for it.
      if (anyHasLeft) listener.unowned();
    },
    onRescued(nodes) {
      listener.rescued(nodes);
      listener.unowned();
    },
    onFailure: failed("heartbeat"),
  });
  const changes = createChanges({
    pool: leasePool,
    clock: machineClock,
    node: membership.current,
    async heed(made) {
      const news: Change[] = [];
      for (const change of made) {
        if (change.kind === "stream_watched") watchers.heed(change);
        else news.push(change);
      }
      if (news.length > 0) await options.heed(news);
    },
    onGoneBack: membership.suspect,
    onFailure: failed("change"),
  });
  const writes = createWrites({ pool, clock, atOnce: options.writesAtOnce, moment: options.moment, changes });
  const watchers = createStreamWatchers({
    pool,
    writes,
    node: membership.current,
    mayTrust: membership.mayTrust,
    onFailure: failed("stream"),
  });
  const jobs = createJobs({
    pool,
    clock: machineClock,
    node: membership.current,
    mayStart: membership.mayStart,
    onFailure: failed("job"),
  });

  return {
    writes,
    jobs,
    watchers,
    lease: {
      mayStart: membership.mayStart,
      sinceBeatMs: membership.sinceBeatMs,
      living: () => living,
      nodes: () => listNodes(pool, membership.current()?.incarnation),
      announce: membership.announce,
      onChange(next) {
        listener = next;
      },
    },
    current: membership.current,
    mayTrust: membership.mayTrust,
    suspect: membership.suspect,
    tellUnowned: () => listener.unowned(),
    async join() {
      options.onJoined(await membership.start());
      await Promise.all([jobs.seek(), watchers.look()]);
    },
    async listen(notifications) {
      const hearChanges = () => void changes.catchUp().catch(failed("change"));
      await notifications.listen(changeChannel, hearChanges, hearChanges);
      await notifications.listen(wakeChannel, jobs.hear, () => {});
    },
    async leave() {
      await membership.stop();
      await jobs.close();
    },
  };
}
