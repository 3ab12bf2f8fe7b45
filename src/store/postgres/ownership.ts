import { laneSlots } from "./event-schema.ts";
import { storageUnavailable } from "./faults.ts";
import type { Node } from "./nodes.ts";
import type { Transaction } from "./pool.ts";

/**
 * The lane whose row stands for everything that a node takes for itself outside its lanes. A transaction that makes it the
 * owner of something holds a shared lock on that row until it has committed. Whoever declares the node dead waits for the
 * lock, then takes the row away, and then finds everything that the node owns.
 */
const ownerLane = 2;

export const ownerLaneOf = (node: Pick<Node, "slot">): number => node.slot * laneSlots + ownerLane;

/** For the beginning of a statement, with its first two parameters: empty when the node may no longer own anything. */
export const ownerText = "select 1 from lane where slot = $1::smallint and incarnation = $2::int for share";

/** From here on the node may own. @throws DomainError `unavailable` when it was declared dead */
export async function beOwner({ run }: Pick<Transaction, "run">, node: Node): Promise<void> {
  const rows = await run(ownerText, [ownerLaneOf(node), node.incarnation]);
  if (rows.length === 0) throw storageUnavailable("passing");
}
