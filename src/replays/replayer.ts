import type { DeliveryControl } from "../delivery/queue/control.ts";
import { DomainError } from "../domain/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { createLoop, type Loop } from "../lib/loop.ts";
import type { Store } from "../store/store.ts";
import type { Hub } from "../stream/hub.ts";
import { toProgressMessage, toReplayBody } from "./model.ts";

/** Until what was in flight, or on its way back, as its replay was cancelled is looked for once more. */
const ownedPauseMs = 250;

export interface ReplayerDeps {
  store: Pick<Store, "queueReplayBatch" | "returnCancelled">;
  deliveries: Pick<DeliveryControl, "wake" | "overtake">;
  hub: Pick<Hub, "publish">;
  clock: Clock;
  log: Log;
  /** Whether the job is this node's. */
  mayRun(): boolean;
  /** Wakes the node that has it. */
  passOn(): void;
  /**
   * Events queued in one transaction. The specification's batch of 1,000 goes to the store in parts of this size, with a
   * turn of the event loop between them, so that a commit of live traffic never waits for a whole batch.
   * @default 100
   */
  chunk?: number;
}

/**
 * Lets what waits for a cancelled replay be what it was, and queues the events of bulk replays, a chunk at a time, each time for the account that was served least. The store keeps
 * how far each one is, in the transaction that queues: after a restart it goes on where it was.
 *
 * While the disk is below its floor a replay waits; it goes on within a second of there being room.
 *
 * `wake` it when a replay was started or cancelled, or an account may go on (the operator resumed it).
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
  /** What was logged last: a full disk would otherwise write a line a second. */
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
      const isTemporary = error instanceof DomainError && error.kind === "unavailable";
      const message = messageOf(error);
      if (message === lastFailure) return;
      lastFailure = message;
      log.write(isTemporary ? "warn" : "error", "replay.not_queued", { error: message });
    },
  });
  return loop;
}
