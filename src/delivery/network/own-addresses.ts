import { closeSync, openSync, readSync } from "node:fs";
import { networkInterfaces } from "node:os";
import type { Clock } from "../../lib/clock.ts";
import { parseAddress } from "./public-address.ts";

/** The addresses of this machine's interfaces, as they are now. Loopback is left out: it is judged as a range. */
export interface OwnAddresses {
  /** @param address in its canonical form, as `IpAddress.toString()` and sockets write it */
  has(address: string): boolean;
  /** A different number whenever they have changed. */
  version(): number;
}

export interface OwnAddressesOptions {
  clock: Pick<Clock, "monotonicMs">;
  /** @default those of the system, by its list of interfaces and by the kernel's tables */
  list?: () => Iterable<string>;
}

/**
 * The list is read again (0.2 ms) once it is older than this: an address that this machine takes over is refused from then on.
 */
const listAgeMs = 2_000;

export function createOwnAddresses({ clock, list = systemAddresses }: OwnAddressesOptions): OwnAddresses {
  let own = new Set<string>();
  let listedAtMs = Number.NEGATIVE_INFINITY;
  let version = 0;

  function lookUp(): void {
    const nowMs = clock.monotonicMs();
    if (nowMs - listedAtMs <= listAgeMs) return;
    listedAtMs = nowMs;
    const now = new Set(canonical(list()));
    if (now.symmetricDifference(own).size > 0) version += 1;
    own = now;
  }

  return {
    has(address) {
      lookUp();
      return own.has(address);
    },
    version() {
      lookUp();
      return version;
    },
  };
}

function* canonical(addresses: Iterable<string>): Iterable<string> {
  for (const text of addresses) {
    const address = parseAddress(text);
    if (address !== undefined && address.range() !== "loopback") yield address.toString();
  }
}

function* systemAddresses(): Iterable<string> {
  for (const addresses of Object.values(networkInterfaces())) for (const { address } of addresses ?? []) yield address;
  // The list omits interfaces without a carrier (an unplugged cable, the bridge of stopped containers), but the kernel
  // still answers on their addresses.
  if (process.platform === "linux") {
    yield* localAddresses4(readStart("/proc/net/fib_trie"));
    yield* localAddresses6(readStart("/proc/net/if_inet6"));
  }
}

/** Those of the kernel's routes that end here: `|-- 192.0.2.1`, and below it `/32 host LOCAL`. */
function* localAddresses4(trie: string): Iterable<string> {
  for (const [, address = "", routes = ""] of trie.matchAll(/\|-- ([\d.]+)((?:\n\s+\/.*)+)/g)) {
    if (routes.includes("/32 host LOCAL")) yield address;
  }
}

/** Lines that begin with the 32 digits of an address. */
function* localAddresses6(lines: string): Iterable<string> {
  for (const [digits] of lines.matchAll(/^[0-9a-f]{32}/gm)) yield digits.replace(/.{4}(?!$)/g, "$&:");
}

/** A router's table has a hundred megabytes; the part beyond this is not read. */
const maxTableBytes = 2 ** 20;

/** Empty where a sandbox hides the file: the list of interfaces is available in any case. */
function readStart(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const chunk = Buffer.alloc(64 * 1024);
      let text = "";
      for (let read = -1; read !== 0 && text.length < maxTableBytes; ) {
        read = readSync(file, chunk);
        text += chunk.toString("latin1", 0, read);
      }
      return text;
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}
