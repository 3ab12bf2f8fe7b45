import type { Replay, ReplayPage, Webhook } from "../../api/types.ts";
import { groupsOf, hasEnded, type ReplayGroup } from "../../parts/replay-groups.ts";
import { mayReach } from "./narrowed.ts";

/** What is read first: a page of events that is replayed one by one, twice. */
export const latestSize = 100;

/** For those that start before the next read. */
const room = 20;

/**
 * The groups of which something runs or waits, except what was started here. What has ended of a group is part of its
 * progress.
 * @param only those that may deliver to this webhook
 */
export function underWay(replays: readonly Replay[], startedHere: readonly string[], only?: Webhook): ReplayGroup[] {
  const reaching = replays.filter((replay) => only === undefined || mayReach(replay, only));
  return groupsOf(reaching).filter((group) =>
    group.some((replay) => !hasEnded(replay) && !startedHere.includes(replay.id)),
  );
}

/** What is read of the list to follow some of it: all up to the last of these. Null: nothing was read yet. */
export function sizeToFollow(replays: readonly Replay[] | null, followed: ReadonlySet<string>): number {
  if (replays === null) return latestSize;
  return Math.min(latestSize, replays.findLastIndex(({ id }) => followed.has(id)) + 1 + room);
}

/** Whether all that is followed was read, and all that has started since; otherwise the first `latestSize` are needed. */
export function isEnough({ replays, total }: ReplayPage, followed: ReadonlySet<string>): boolean {
  if (replays.length >= Math.min(latestSize, total)) return true;
  const last = replays.at(-1);
  const isAllRead = [...followed].every((id) => replays.some((replay) => replay.id === id));
  return last !== undefined && hasEnded(last) && isAllRead;
}
