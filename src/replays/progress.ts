import type { ReplayRef } from "../domain/replay.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";
import type { Hub } from "../stream/hub.ts";
import { toReplayBody } from "./model.ts";

/** A replay of a million events ends thousands of runs a second; its progress is worth a message twice a second. */
const announceEveryMs = 500;

export interface ReplayProgressDeps {
  store: Pick<Store, "replayByKey">;
  hub: Pick<Hub, "publish">;
  clock: Clock;
  /** Called when a replay has ended: the account's next one may begin. */
  onCompleted(): void;
}

/** Reports on the stream how the runs of replays end. */
export function createReplayProgress({ store, hub, clock, onCompleted }: ReplayProgressDeps) {
  const changed = new Map<number, { replay: ReplayRef; tenantId: string }>();

  async function announce(): Promise<void> {
    const replays = [...changed.values()];
    changed.clear();
    for (const { replay: ref, tenantId } of replays) {
      const replay = await store.replayByKey(ref);
      if (!replay) continue;
      hub.publish(tenantId, "replay.progressed", () => toReplayBody(replay));
      if (replay.status === "completed") onCompleted();
    }
  }

  return {
    /** A run of this replay has ended. */
    runEnded(replay: ReplayRef, tenantId: string): void {
      // A missed message is made up for by the next one, and by reading the replay.
      if (changed.size === 0) clock.after(announceEveryMs, () => void announce().catch(() => {}));
      changed.set(replay.replayKey, { replay, tenantId });
    },
  };
}
