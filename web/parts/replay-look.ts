import type { Replay } from "../api/types.ts";

/** How the state of a replay is shown. */
export interface ReplayLook {
  readonly tone: string;
  readonly icon: "wait" | "replays" | "check" | "cross" | "warn";
  readonly word: string;
}

const looks: Readonly<Record<string, ReplayLook>> = {
  waiting: { tone: "waiting", icon: "wait", word: "Waiting for its turn" },
  running: { tone: "running", icon: "replays", word: "Running" },
  completed: { tone: "delivered", icon: "check", word: "Completed" },
  cancelled: { tone: "", icon: "cross", word: "Cancelled" },
};

/** A replay that has finished without delivering, or without everything arriving, is not a success. */
export function lookOf({ status, queued, delivered, failed }: Replay): ReplayLook {
  if (status === "completed") {
    if (queued === 0) return { tone: "", icon: "cross", word: "Nothing to deliver" };
    if (failed > 0 && delivered === 0) return { tone: "failed", icon: "cross", word: "All failed" };
    if (failed > 0) return { tone: "failed", icon: "warn", word: "Some failed" };
  }
  return looks[status] ?? { tone: "", icon: "wait", word: status };
}
