import type { Clock } from "../../lib/clock.ts";
import { createNat64, type Nat64 } from "./nat64.ts";
import { createOwnAddresses } from "./own-addresses.ts";
import { createResolver } from "./resolver.ts";

/** What an address means depends on where this program runs, and changes while it does. */
export interface Surroundings {
  /** Whether it is the address of one of this machine's interfaces. Loopback does not count: it is judged as a range. */
  isOwn(address: string): boolean;
  readonly nat64: Nat64;
  /** A different number whenever the meaning of an address may have changed. */
  version(): number;
}

export interface SystemSurroundings extends Surroundings {
  close(): void;
}

/** A machine without interfaces in a network without NAT64: what an address means everywhere. */
export const nowhere: Surroundings = {
  isOwn: () => false,
  nat64: { prefixes: () => [], version: () => 0, learn: () => undefined },
  version: () => 0,
};

/** The surroundings of this machine and its network. Nothing is looked up before an address needs it. */
export function createSurroundings(options: { clock: Clock; dnsServers?: readonly string[] }): SystemSurroundings {
  const resolver = createResolver(options);
  const own = createOwnAddresses(options);
  const nat64 = createNat64({ clock: options.clock, resolve6: resolver.resolve6 });
  return {
    isOwn: (address) => own.has(address),
    nat64,
    version: () => own.version() + nat64.version(),
    close: () => resolver.close(),
  };
}
