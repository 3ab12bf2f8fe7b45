import { type Cidr, canonicalAddress, parseCidr } from "../lib/cidr.ts";

/**
 * The address that limits count by: the socket's, or, behind trusted proxies, the right-most address in `X-Forwarded-For`
 * that is not one of them. Anything further left was written by strangers. If an entry is not an address, what is further
 * left cannot be trusted either, and the proxy's own address counts: taken as it came, such an entry would pass for a new
 * client each time.
 */
export function createClientAddress(trustedProxies: readonly string[]) {
  const trusted = trustedProxies.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== null);
  const isTrusted = (address: string) => trusted.some((cidr) => cidr.contains(address));

  return function clientAddress(socketAddress: string, headers: Headers): string {
    const socket = canonicalAddress(socketAddress) ?? socketAddress;
    if (trusted.length === 0 || !isTrusted(socket)) return socket;
    const forwarded = headers.get("x-forwarded-for")?.split(",") ?? [];
    for (const hop of forwarded.reverse()) {
      if (hop.trim() === "") continue;
      const address = addressIn(hop.trim());
      if (address === null) return socket;
      if (!isTrusted(address)) return address;
    }
    return socket;
  };
}

/** `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`; some proxies add a port, some quote. */
function addressIn(hop: string): string | null {
  const text = /^"(.*)"$/.exec(hop)?.[1] ?? hop;
  const [, bracketed, plain] = /^(?:\[([^\]]*:[^\]]*)\]|([\d.]+))(?::\d{0,5})?$/.exec(text) ?? [];
  return canonicalAddress(bracketed ?? plain ?? text);
}
