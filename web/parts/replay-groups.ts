import type { Replay } from "../api/types.ts";

export const hasEnded = ({ status }: Pick<Replay, "status">) => status === "completed" || status === "cancelled";

/** Replays of one delivery each, summed up as one. `selected` counts the replays: two of them may be of the same event. */
export function sumOf([first, ...others]: readonly [Replay, ...Replay[]], kind: string): Replay {
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
