import type { DeliveryRef } from "../../domain/delivery.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import type { Lanes } from "./lanes.ts";
import type { Node } from "./nodes.ts";
import { ownerLaneOf } from "./ownership.ts";
import { arrayText } from "./parameters.ts";
import { type Pool, statementTimeoutMs, type Transaction } from "./pool.ts";
import { placesInQueue } from "./queue-places.ts";
import type { UnderWay } from "./under-way.ts";

/**
 * What this node owns, as far as it knows. The table may know of more: a claim whose answer was lost with its connection has
 * made the node the owner of deliveries that it never heard of, and nobody else would ever attempt those. So where an answer
 * was lost, the two are compared, and what only the table knows of is disowned.
 *
 *   claimed, accepted ─▶ held ─ settled, released ─▶ not held
 *   an answer was lost ─▶ doubt: owned in the table, and not held ─▶ unowned
 */
export interface Holdings {
  take(deliveries: readonly DeliveryRef[]): void;
  end(deliveries: readonly DeliveryRef[]): void;
  /** An answer about the deliveries of this tenant was lost. They are compared until the table has answered. */
  doubt(tenantKey: number): void;
  /** Nothing is owned any longer: from now on this process is another node. */
  forgetAll(): void;
  close(): Promise<void>;
}

export interface HoldingsOptions {
  pool: Pool;
  clock: Clock;
  /** Null while this process is not a node. */
  node(): Node | null;
  underWay: UnderWay;
  lanes: Pick<Lanes, "underWay">;
  /** Called when something has no owner any longer and may be long overdue: nobody would look for it otherwise. */
  onUnowned(): void;
  onFailure(error: unknown): void;
}

const retryMs = 1_000;
/** Compares again after this long: a statement that was on its way when its connection was lost may have begun since. */
const lookAgainMs = statementTimeoutMs + 5_000;

export const unownText = `update pending set owner = null from ${placesInQueue}
  where pending.ctid = found.place and owner = $4::int`;

export function createHoldings({
  pool,
  clock,
  node,
  underWay,
  lanes,
  onUnowned,
  onFailure,
}: HoldingsOptions): Holdings {
  const held = new Set<number>();
  const doubted = new Set<number>();
  const comparing = new Set<Promise<void>>();
  const timers = new Set<() => void>();
  let isClosed = false;

  /**
   * Meanwhile nothing is claimed from here, and the lock waits for the statements whose connections were lost. What lanes
   * have accepted is held once they have answered. So whatever is then owned but not held is held by nobody.
   */
  const compare = (tenantKey: number, own: Node) =>
    underWay.pause(() => pool.transact((tx) => unown(tx, tenantKey, own)));

  /** @returns whether there was anything to disown */
  async function unown(tx: Transaction, tenantKey: number, { slot, incarnation }: Node): Promise<boolean> {
    await tx.run("select 1 from lane where slot = $1::smallint for update", [ownerLaneOf({ slot })]);
    for (let wasAny = false; ; wasAny = true) {
      const owned = await tx.run<{ eventSeq: number; key: number }>(
        `select event_seq::float8 as "eventSeq", key::float8 as key from pending
          where tenant_key = $1::bigint and owner = $2::int`,
        [tenantKey, incarnation],
      );
      await lanes.underWay();
      await new Promise<void>((resolve) => setImmediate(resolve));
      const lost = owned.filter(({ key }) => !held.has(key));
      if (lost.length === 0) return wasAny;
      // A replay elsewhere may be writing one of them, which is then not found: hence another look.
      await tx.run(unownText, [
        tenantKey,
        arrayText(lost.map(({ eventSeq }) => eventSeq)),
        arrayText(lost.map(({ key }) => key)),
        incarnation,
      ]);
    }
  }

  async function resolve(tenantKey: number): Promise<void> {
    while (!isClosed) {
      const own = node();
      if (own === null) return;
      doubted.delete(tenantKey);
      try {
        if (await compare(tenantKey, own)) onUnowned();
        if (!doubted.has(tenantKey)) return;
      } catch (error) {
        onFailure(error);
        await sleep(clock, retryMs);
      }
    }
  }

  function begin(tenantKey: number): void {
    const done = resolve(tenantKey).finally(() => comparing.delete(done));
    comparing.add(done);
  }

  return {
    take(deliveries) {
      for (const { deliveryKey } of deliveries) held.add(deliveryKey);
    },
    end(deliveries) {
      for (const { deliveryKey } of deliveries) held.delete(deliveryKey);
    },
    doubt(tenantKey) {
      // The deliveries of a node that no longer exists are released by its rescue.
      if (node() === null || doubted.has(tenantKey)) return;
      doubted.add(tenantKey);
      begin(tenantKey);
      const cancel = clock.after(lookAgainMs, () => {
        timers.delete(cancel);
        begin(tenantKey);
      });
      timers.add(cancel);
    },
    forgetAll() {
      held.clear();
      doubted.clear();
    },
    async close() {
      isClosed = true;
      for (const cancel of timers) cancel();
      await Promise.allSettled(comparing);
    },
  };
}
