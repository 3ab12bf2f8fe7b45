import type { Moment } from "../../domain/moment.ts";
import type { ReplayRef } from "../../domain/replay.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Settlement } from "../deliveries.ts";
import type { Growth } from "../growth.ts";
import { type AcceptRequest, heavyEvents } from "../store.ts";
import { acceptLane, type LaneAcceptance } from "./accept-lane.ts";
import type { KnownGroups } from "./failure-counts.ts";
import { storageUnavailable } from "./faults.ts";
import type { KeptTenants } from "./kept-tenants.ts";
import { createLane, type Lane, type LaneOptions } from "./lane.ts";
import type { Node } from "./nodes.ts";
import type { Numbers } from "./numbers.ts";
import { byKeys } from "./planner.ts";
import { createPool, type Pool, type PoolOptions } from "./pool.ts";
import { type LaneSettlement, settleLane } from "./settle-lane.ts";

/** What was accepted, and the node that has become the owner of its deliveries. */
export interface AcceptedByLane {
  readonly accepted: LaneAcceptance;
  readonly incarnation: number;
}

/** The lanes of a node that nearly everything goes through: one accepts, one settles. */
export interface Lanes {
  accept(request: AcceptRequest): Promise<AcceptedByLane>;
  settle(settlement: Settlement): Promise<LaneSettlement>;
  /** From now on this process is another node. */
  beginAt(node: Node): void;
  /**
   * Resolves once the database has answered on the connection of each lane; where there is none, it is made.
   * @throws unavailable
   */
  reach(): Promise<void>;
  /** Resolves when everything being written now has been answered. */
  underWay(): Promise<void>;
  /** Age of the oldest waiting job, in ms. */
  lagMs(): number;
  /** The program is ending: what became of a batch is found out within some seconds, or never. */
  hurry(): void;
  /** Writes what waits; later jobs are refused. */
  close(): Promise<void>;
}

export interface LanesOptions extends Growth, Pick<PoolOptions, "url" | "onFailure"> {
  readonly clock: Clock;
  readonly kept: KeptTenants;
  readonly numbers: Numbers;
  readonly groups: KnownGroups;
  moment(): Moment;
  onCommit?: LaneOptions<never, never>["onCommit"];
  onEnded(replays: readonly ReplayRef[]): Promise<void>;
  /** Called when a lane of this node can write no more. */
  onFenced(incarnation: number): void;
}

/** Each is an index into `Node.lanes`. */
const acceptingLane = 0;
const settlingLane = 1;

/** A request of this many bytes goes alone, too. */
const heavyBytes = 256 * 1024;

const isHeavy = ({ events }: AcceptRequest): boolean =>
  events.length >= heavyEvents || events.reduce((sum, { payload }) => sum + payload.length, 0) >= heavyBytes;

interface OfNode {
  readonly incarnation: number;
  readonly accepting: Lane<AcceptRequest, LaneAcceptance>;
  readonly settling: Lane<Settlement, LaneSettlement>;
  readonly pools: readonly Pool[];
}

export function createLanes(options: LanesOptions): Lanes {
  const { url, clock, onFailure, onCommit, onFenced } = options;
  let current: OfNode | null = null;
  let closing: Promise<unknown> = Promise.resolve();
  let endingSince: number | null = null;

  const lanePool = () => createPool({ url, size: 1, clock, settings: byKeys, ...(onFailure && { onFailure }) });

  function open({ incarnation, lanes }: Node): OfNode {
    const pools = [lanePool(), lanePool()] as const;
    const own = (which: number) => {
      const mark = lanes[which];
      if (!mark) throw new Error(`A node has no lane ${which}`);
      return {
        ...{ mark, incarnation, clock },
        onFenced: () => onFenced(incarnation),
        endingSince: () => endingSince,
        ...(onCommit && { onCommit }),
      };
    };
    return {
      incarnation,
      accepting: createLane({
        pool: pools[0],
        ...own(acceptingLane),
        ...acceptLane({ ...options, pool: pools[0], incarnation }),
      }),
      settling: createLane({
        pool: pools[1],
        ...own(settlingLane),
        ...settleLane({ ...options, pool: pools[1], incarnation }),
      }),
      pools,
    };
  }

  async function end({ accepting, settling, pools }: OfNode): Promise<void> {
    await Promise.all([accepting.close(), settling.close()]);
    await Promise.all(pools.map((pool) => pool.close()));
  }

  function living(): OfNode {
    if (current === null) throw storageUnavailable("passing");
    return current;
  }

  return {
    async accept(request) {
      const { accepting, incarnation } = living();
      return { accepted: await accepting.submit(request, isHeavy(request)), incarnation };
    },
    settle: async (settlement) => living().settling.submit(settlement),

    beginAt(node) {
      const before = current;
      current = open(node);
      if (before !== null) closing = Promise.all([closing, end(before)]);
    },

    async reach() {
      await Promise.all(living().pools.map((pool) => pool.read("select 1")));
    },

    async underWay() {
      await Promise.all([current?.accepting.underWay(), current?.settling.underWay()]);
    },

    lagMs: () => Math.max(current?.accepting.lagMs() ?? 0, current?.settling.lagMs() ?? 0),

    hurry() {
      endingSince ??= clock.monotonicMs();
    },

    async close() {
      const before = current;
      if (before !== null) await end(before);
      await closing;
    },
  };
}
