import type { Replay } from "../api/types.ts";

export const hasEnded = ({ status }: Pick<Replay, "status">) => status === "completed" || status === "cancelled";

/** The list after some of it has changed. */
export const withChanged = (replays: readonly Replay[], changed: readonly Replay[]): Replay[] =>
  replays.map((replay) => changed.find(({ id }) => id === replay.id) ?? replay);

/** At least one, newest first. */
export type ReplayGroup = readonly [Replay, ...Replay[]];

/**
 * Consecutive replays of one event each under one label belong together, such as those of a page of the event list. Any
 * other replay is a group of its own.
 */
export function groupsOf(replays: readonly Replay[]): ReplayGroup[] {
  const groups: [Replay, ...Replay[]][] = [];
  for (const replay of replays) {
    const group = groups.at(-1);
    const isOfIt = group?.[0].kind === "single" && group[0].replayGroupId === replay.replayGroupId;
    if (isOfIt && replay.kind === "single") group.push(replay);
    else groups.push([replay]);
  }
  return groups;
}

/** Replays of one delivery each, summed up as one. `selected` counts the replays: two of them may be of the same event. */
export function sumOf([first, ...others]: ReplayGroup, kind: string): Replay {
  const all = [first, ...others];
  const sum = (name: "selected" | "queued" | "delivered" | "failed" | "superseded" | "skipped" | "returned") =>
    all.reduce((total, replay) => total + (replay[name] ?? 0), 0);
  const open = all.find((replay) => !hasEnded(replay));
  return {
    ...first,
    kind,
    status: open?.status ?? (all.some(({ status }) => status === "cancelled") ? "cancelled" : "completed"),
    ...{ selected: sum("selected"), queued: sum("queued"), delivered: sum("delivered"), failed: sum("failed") },
    ...{ superseded: sum("superseded"), skipped: sum("skipped"), returned: sum("returned") },
  };
}
