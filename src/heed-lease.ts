import type { DeliveryControl } from "./delivery/queue/control.ts";
import type { Signers } from "./delivery/signers.ts";
import type { Engine } from "./engine.ts";
import type { Answers } from "./http/answers.ts";
import type { Log } from "./lib/log.ts";
import type { NodeLeaseListener } from "./store/node-lease.ts";
import type { Hub } from "./stream/hub.ts";

export interface LeaseHeederDeps {
  deliveries: Pick<DeliveryControl, "surrender" | "wake" | "look">;
  hub: Pick<Hub, "closeAll">;
  answers: Pick<Answers, "closeAll">;
  signers: Pick<Signers, "forgetAll">;
  failingWebhooks: Pick<Engine["failingWebhooks"], "forgetAll">;
  /** Keeps deliveries away from the listeners of living nodes. */
  avoidNodes(): void;
  log: Log;
}

/** What a running program does when its lease on the store is lost or changes. */
export function createLeaseHeeder(deps: LeaseHeederDeps): NodeLeaseListener {
  const { deliveries, hub, answers, signers, failingWebhooks, avoidNodes, log } = deps;
  let letGo = 0;

  return {
    lost() {
      letGo = deliveries.surrender();
      // Since the last heartbeat a session or an account may have ended; clients that are still welcome come back.
      hub.closeAll();
      answers.closeAll();
      signers.forgetAll();
      failingWebhooks.forgetAll();
    },
    rejoined(awayMs) {
      log.write("warn", "node.rejoined", { seconds: Math.round(awayMs / 1000), letGo });
    },
    confirmed() {
      avoidNodes();
      deliveries.wake([]);
    },
    rescued(nodes) {
      for (const { name, deliveries: takenOver } of nodes) log.write("warn", "node.died", { node: name, takenOver });
    },
    unowned: deliveries.look,
  };
}
