import type { DeliveryControl } from "./delivery/queue/control.ts";
import type { Signers } from "./delivery/signers.ts";
import type { Engine } from "./engine.ts";
import type { Answers } from "./http/answers.ts";
import type { NodeLeaseListener } from "./store/node-lease.ts";
import type { Hub } from "./stream/hub.ts";

export interface LeaseHeederDeps {
  deliveries: Pick<DeliveryControl, "surrender" | "wake" | "look">;
  hub: Pick<Hub, "closeAll">;
  answers: Pick<Answers, "closeAll">;
  signers: Pick<Signers, "forgetAll">;
  failingWebhooks: Pick<Engine["failingWebhooks"], "forgetAll">;
  /** Keeps deliveries off the listeners of those that live. */
  avoidNodes(): void;
}

/** What a running program does as its lease on the store goes. */
export const createLeaseHeeder = ({
  deliveries,
  hub,
  answers,
  signers,
  failingWebhooks,
  avoidNodes,
}: LeaseHeederDeps): NodeLeaseListener => ({
  lost() {
    deliveries.surrender();
    // Since the last heartbeat a session may have ended, or an account; whoever is still welcome comes back.
    hub.closeAll();
    answers.closeAll();
    signers.forgetAll();
    failingWebhooks.forgetAll();
  },
  confirmed() {
    avoidNodes();
    deliveries.wake([]);
  },
  unowned: deliveries.look,
});
