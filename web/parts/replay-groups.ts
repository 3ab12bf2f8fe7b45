import type { Replay } from "../api/types.ts";

export const hasEnded = ({ status }: Pick<Replay, "status">) => status === "completed" || status === "cancelled";

/** How many of its deliveries have not ended. */
export const openOf = ({ queued, returned = 0, delivered, failed, superseded }: Replay): number =>
  queued - returned - delivered - failed - superseded;

/** How many deliveries it has left; 0: none, or nobody knows yet, as some of its events are still to be queued. */
export const leftOf = (replay: Replay): number =>
  replay.queued + replay.skipped < replay.selected ? 0 : openOf(replay);

/** The replay that this one waits for: those of more than one event run one after another (rules, section 10). */
export const aheadOf = ({ id, status }: Replay, replays: readonly Replay[]): Replay | undefined =>
  status === "waiting"
    ? replays.find((other) => other.id !== id && other.kind !== "single" && other.status === "running")
    : undefined;

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
    if (group && belongTogether(group[0], replay)) group.push(replay);
    else groups.push([replay]);
  }
  return groups;
}

/** For consecutive replays. */
export const belongTogether = (one: Replay, other: Replay): boolean =>
  one.kind === "single" && other.kind === "single" && one.replayGroupId === other.replayGroupId;

/** A page of the list, and the pages beside it where a group of it goes on; an empty one where none does. */
export interface PageAround {
  readonly newer: readonly Replay[];
  readonly replays: readonly Replay[];
  readonly older: readonly Replay[];
  /** Whether the list ends with them. */
  readonly isAllOf: { readonly newer: boolean; readonly older: boolean };
}

/** The groups that have a replay on the page, each with its replays on the pages beside it. */
export function groupsOn({ newer, replays, older }: PageAround): ReplayGroup[] {
  const here = new Set(replays.map(({ id }) => id));
  // One that starts between two reads moves the others on, and then both have the same one.
  const beside = (page: readonly Replay[]) => page.filter(({ id }) => !here.has(id));
  return groupsOf([...beside(newer), ...replays, ...beside(older)]).filter((group) =>
    group.some(({ id }) => here.has(id)),
  );
}

/** Whether a group may go on beyond what was read. */
export function mayGoOn(group: ReplayGroup, { newer, older, isAllOf }: PageAround): boolean {
  const reaches = (end: Replay | undefined) => end !== undefined && group.some(({ id }) => id === end.id);
  return (!isAllOf.newer && reaches(newer[0])) || (!isAllOf.older && reaches(older.at(-1)));
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
