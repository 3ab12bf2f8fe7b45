import type { DueDelivery } from "../domain/delivery.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { StartThread } from "../lib/threads.ts";
import { type AddressPolicy, createAddressPolicy } from "./network/address.ts";
import { type Listener, listenersText } from "./network/own-listeners.ts";
import { createSurroundings } from "./network/surroundings.ts";
import { createTransport } from "./network/transport.ts";
import { createOffload } from "./offload.ts";
import { createSender, type Sender } from "./sender.ts";
import { createSenderThread } from "./sender-thread.ts";

/** The way out of this machine: where a delivery may go, and what takes it there. */
export interface Network extends Sender {
  readonly policy: Omit<AddressPolicy, "avoid">;
  /**
   * From now on nothing goes to these: the listeners of this server and of those that share its store. Cheap if they have
   * not changed.
   */
  avoid(ownListeners: readonly Listener[]): void;
}

export interface NetworkSettings {
  readonly localMode: boolean;
  readonly allowTargets: readonly string[];
  readonly blockTargets: readonly string[];
  /** Empty: the system's. */
  readonly dnsServers: readonly string[];
  /** Certificate authorities to trust in addition to the usual ones, PEM. */
  readonly extraCa: string | null;
  /** `http://user:password@host:port`; null: connections go straight to their hosts. */
  readonly deliveryProxy: string | null;
}

export interface NetworkDeps {
  settings: NetworkSettings;
  clock: Clock;
  log: Log;
  /** Signs and sends on a separate thread when there is much to send, by the system's clock; otherwise always on this one. */
  maySendElsewhere: boolean;
  /** See `OffloadDeps`. */
  busyMs(): number | null;
  /** Told for each request whether it went out on a kept connection. */
  onConnection(reused: boolean): void;
  /** Called for each answered attempt with the time it took apart from its receiver's, in ms; only if it may send elsewhere. */
  onOwnTime(delivery: DueDelivery, ownMs: number): void;
  startThread: StartThread;
}

export function createNetwork({
  settings,
  clock,
  log,
  maySendElsewhere,
  busyMs,
  onConnection,
  onOwnTime,
  startThread,
}: NetworkDeps): Network {
  const { localMode, allowTargets, blockTargets, dnsServers, extraCa, deliveryProxy } = settings;
  let ownListeners: readonly Listener[] = [];
  const policyOptions = () => ({ localMode, allowTargets, blockTargets, ownListeners });
  const outbound = {
    ...(dnsServers.length > 0 && { dnsServers }),
    ...(extraCa !== null && { extraCa }),
    ...(deliveryProxy !== null && { proxyUrl: deliveryProxy }),
  };
  const surroundings = createSurroundings({ ...outbound, clock });
  const policy = createAddressPolicy(policyOptions(), surroundings);
  const here = createSender(createTransport({ ...outbound, policy, clock, onConnection }));
  const thread = maySendElsewhere
    ? createSenderThread({
        settings: () => ({ ...outbound, policy: policyOptions() }),
        ...{ clock, log, onConnection, onOwnTime, startThread },
      })
    : null;
  const sender = thread ? createOffload({ here, elsewhere: thread, clock, busyMs, onOwnTime }) : here;

  return {
    policy,
    avoid(listeners) {
      if (listenersText(listeners) === listenersText(ownListeners)) return;
      ownListeners = listeners;
      policy.avoid(listeners);
      thread?.avoid(listeners);
    },
    send: sender.send,
    close() {
      sender.close();
      surroundings.close();
    },
  };
}
