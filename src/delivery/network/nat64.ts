import ipaddr from "ipaddr.js";
import type { Clock } from "../../lib/clock.ts";
import { type Embedding, type IpAddress, parseAddress } from "./public-address.ts";

/**
 * The prefixes under which this network reaches IPv4 addresses. A network may use any of its own addresses for them, so
 * an address that looks public may lead inside; the resolver says which prefixes they are (RFC 7050).
 */
export interface Nat64 {
  /** Those known so far. */
  prefixes(): readonly Embedding[];
  /** A different number whenever they may have changed. */
  version(): number;
  /** Asks for them if the last time was long ago; otherwise undefined. Never rejects, and takes 2 s at most. */
  learn(): Promise<void> | undefined;
}

export interface Nat64Options {
  clock: Clock;
  /** The IPv6 addresses of a name. */
  resolve6(hostname: string): Promise<readonly string[]>;
}

/**
 * This name has only IPv4 addresses: any IPv6 address for it was made by the resolver, by putting a prefix before one of them.
 */
const v4OnlyName = "ipv4only.arpa";
const v4OnlyAddresses: ReadonlySet<string> = new Set(["192.0.0.170", "192.0.0.171"]);

/** Networks change their prefix when they are rebuilt. */
const knownForMs = 5 * 60_000;
/** Pause before the next try: name servers that did not answer have cost nothing but time. */
const unknownForMs = 30_000;
/** Without an answer by then, the attempt goes on with what was known: silent name servers must not stop deliveries. */
const patienceMs = 2_000;

/** RFC 6052, section 2.2: prefix lengths, and where the address follows. Byte 8 is skipped. */
const layouts: readonly { length: number; bytes: readonly number[] }[] = [
  { length: 32, bytes: [4, 5, 6, 7] },
  { length: 40, bytes: [5, 6, 7, 9] },
  { length: 48, bytes: [6, 7, 9, 10] },
  { length: 56, bytes: [7, 9, 10, 11] },
  { length: 64, bytes: [9, 10, 11, 12] },
  { length: 96, bytes: [12, 13, 14, 15] },
];

/** The prefixes with which these addresses of `ipv4only.arpa` were made. */
export function prefixesIn(addresses: readonly string[]): Embedding[] {
  const found = new Map<string, Embedding>();
  for (const text of addresses) {
    const address = parseAddress(text);
    if (address?.kind() !== "ipv6") continue;
    for (const { length, bytes } of layouts) {
      if (!v4OnlyAddresses.has(embeddedIn(address, bytes))) continue;
      const prefix = ipaddr.IPv6.networkAddressFromCIDR(`${address}/${length}`);
      found.set(`${prefix}/${length}`, { range: [prefix, length], bytes });
    }
  }
  return [...found.values()];
}

function embeddedIn(address: IpAddress, bytes: readonly number[]): string {
  const all = address.toByteArray();
  return bytes.map((position) => all[position]).join(".");
}

export function createNat64({ clock, resolve6 }: Nat64Options): Nat64 {
  let known: readonly Embedding[] = [];
  let holdsUntilMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;
  let version = 0;

  async function ask(): Promise<void> {
    const isAnswered = await resolve6(v4OnlyName).then(
      (addresses) => {
        known = prefixesIn(addresses);
        version += 1;
        return true;
      },
      () => false,
    );
    holdsUntilMs = clock.monotonicMs() + (isAnswered ? knownForMs : unknownForMs);
    asking = undefined;
  }

  return {
    prefixes: () => known,
    version: () => version,
    learn() {
      if (clock.monotonicMs() < holdsUntilMs) return undefined;
      asking ??= ask();
      return Promise.race([
        asking,
        new Promise<void>((resolve) => {
          const cancel = clock.after(patienceMs, resolve);
          void asking?.then(cancel);
        }),
      ]);
    },
  };
}
