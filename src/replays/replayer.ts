import type { DeliveryControl } from "../delivery/queue/control.ts";
import { isUnavailable } from "../domain/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { createLoop, type Loop } from "../lib/loop.ts";
import type { Store } from "../store/store.ts";
import type { Hub } from "../stream/hub.ts";
import { toProgressMessage, toReplayBody } from "./model.ts";

/** How soon to look again for records that were in flight, or on their way back, when their replay was cancelled. */
const ownedPauseMs = 250;

export interface ReplayerDeps {
  store: Pick<Store, "queueReplayBatch" | "returnCancelled">;
  deliveries: Pick<DeliveryControl, "wake" | "overtake">;
  hub: Pick<Hub, "publish">;
  clock: Clock;
  log: Log;
  /** Whether the job is assigned to this node. */
  mayRun(): boolean;
  /** Wakes the node that has the job. */
  passOn(): void;
  /**
   * Events queued per transaction. The specification's batch of 1,000 goes to the store in parts of this size, with a turn of
   * the event loop between them, so that a commit of live traffic never waits for a whole batch.
   * @default 100
   */
  chunk?: number;
}

/**
 * Returns records that wait for a cancelled replay to their earlier state, and queues the events of bulk replays, a chunk at
 * a time, each time for the account that has been served least. The store keeps each replay's progress in the transaction
 * that queues, so after a restart it resumes where it was.
 *
 * While the disk is below its floor a replay waits; it continues within a second of there being room.
 *
 * `wake` it when a replay was started or cancelled, or when an account may continue (the operator resumed it).
 */
export function createReplayer({
  store,
  deliveries,
  hub,
  clock,
  log,
  mayRun,
  passOn,
  chunk = 100,
}: ReplayerDeps): Loop {
  /** The last failure logged: without it, a full disk would write a line a second. */
  let lastFailure = "";
  const loop = createLoop({
    clock,
    mayStep: mayRun,
    passOn,
    async step() {
      const returned = await store.returnCancelled(chunk, clock.now());
      if (returned === "owned") clock.after(ownedPauseMs, loop.wake);
      else if (returned) {
        if (returned.webhooks.length > 0) deliveries.wake(returned.webhooks);
        hub.publish(returned.tenantId, "replay.progressed", () => toReplayBody(returned.replay));
        return "more";
      }
      const queued = await store.queueReplayBatch(chunk, clock.now());
      lastFailure = "";
      if (queued === null) return "idle";
      if (queued.overtaken.length > 0) deliveries.overtake(queued.overtaken);
      if (queued.webhooks.length > 0) deliveries.wake(queued.webhooks);
      const { tenantId, replay, eventIds } = queued;
      hub.publish(tenantId, "replay.progressed", () => toProgressMessage(replay, eventIds, clock.now()));
      return "more";
    },
    onFailure(error) {
      const isTemporary = isUnavailable(error);
      const message = messageOf(error);
      if (message === lastFailure) return;
      lastFailure = message;
      log.write(isTemporary ? "warn" : "error", "replay.not_queued", { error: message });
    },
  });
  return loop;
}
