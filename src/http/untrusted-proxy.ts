import { clientKey, parseCidr } from "../lib/cidr.ts";
import type { Log } from "../lib/log.ts";

/** Limits the warnings: strangers can send the header to a public server, too. */
const maxWarnings = 10;

/**
 * Warns once about each untrusted address whose requests carry `X-Forwarded-For`: behind such a proxy all clients count as
 * one, and fifty wrong passwords from anyone lock out everyone.
 */
export function createProxyWarning(trustedProxies: readonly string[], log: Log) {
  const trusted = trustedProxies.map(parseCidr);
  const known = new Set<string>();

  return function look(socketAddress: string, headers: Headers): void {
    if (known.size >= maxWarnings || !headers.has("x-forwarded-for") || socketAddress === "") return;
    const address = clientKey(socketAddress);
    if (known.has(address) || trusted.some((cidr) => cidr?.contains(socketAddress))) return;
    known.add(address);
    log.write("warn", "proxy.untrusted", {
      address: socketAddress,
      message:
        `Requests from ${socketAddress} carry X-Forwarded-For, but POSTRIDER_TRUSTED_PROXIES does not include that address, ` +
        `so all of them count as one client. Try: POSTRIDER_TRUSTED_PROXIES=${socketAddress}, if that is your proxy.`,
    });
  };
}
