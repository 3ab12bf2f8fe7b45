import { type Cidr, parseCidr } from "../lib/cidr.ts";

/**
 * The address that limits count by: that of the socket, or, behind trusted proxies, the right-most address in
 * `X-Forwarded-For` that is not one of them. What stands further left was written by strangers.
 */
export function createClientAddress(trustedProxies: readonly string[]) {
  const trusted = trustedProxies.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== null);
  const isTrusted = (address: string) => trusted.some((cidr) => cidr.contains(address));

  return function clientAddress(socketAddress: string, headers: Headers): string {
    if (trusted.length === 0 || !isTrusted(socketAddress)) return socketAddress;
    const forwarded = headers.get("x-forwarded-for")?.split(",") ?? [];
    for (const hop of forwarded.reverse()) {
      const address = hop.trim();
      if (address !== "" && !isTrusted(address)) return address;
    }
    return socketAddress;
  };
}
