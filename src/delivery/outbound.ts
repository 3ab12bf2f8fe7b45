import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type AddressPolicy, createAddressPolicy } from "./network/address.ts";
import { createSurroundings } from "./network/surroundings.ts";
import { createTransport } from "./network/transport.ts";
import { createSender, type Sender } from "./sender.ts";
import { createSenderThread } from "./sender-thread.ts";

/** The way out of this machine: where a delivery may go, and what takes it there. */
export interface Network extends Sender {
  readonly policy: AddressPolicy;
}

export interface NetworkSettings {
  readonly localMode: boolean;
  readonly allowTargets: readonly string[];
  readonly blockTargets: readonly string[];
  /** None: the system's. */
  readonly dnsServers: readonly string[];
  /** Certificate authorities to trust beside the usual ones, PEM. */
  readonly extraCa: string | null;
}

export interface NetworkDeps {
  settings: NetworkSettings;
  /** See `AddressPolicyOptions`; read at each check. */
  ownListeners: readonly { host: string; port: number }[];
  clock: Clock;
  log: Log;
  /** Signs and sends on a thread of its own, by the system's clock; otherwise on this one, by the given clock. */
  ownThread: boolean;
  /** Told for each request whether it went out on a kept connection. */
  onConnection(reused: boolean): void;
}

export function createNetwork({ settings, ownListeners, clock, log, ownThread, onConnection }: NetworkDeps): Network {
  const { localMode, allowTargets, blockTargets, dnsServers, extraCa } = settings;
  const policyOptions = { localMode, allowTargets, blockTargets, ownListeners };
  const outbound = { ...(dnsServers.length > 0 && { dnsServers }), ...(extraCa !== null && { extraCa }) };
  const surroundings = createSurroundings({ ...outbound, clock });
  const policy = createAddressPolicy(policyOptions, surroundings);
  const sender = ownThread
    ? createSenderThread({ settings: () => ({ ...outbound, policy: policyOptions }), clock, log, onConnection })
    : createSender(createTransport({ ...outbound, policy, clock, onConnection }));

  return {
    policy,
    send: sender.send,
    close() {
      sender.close();
      surroundings.close();
    },
  };
}
