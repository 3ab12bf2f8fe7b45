import { networkInterfaces } from "node:os";
import type { Config } from "../../config.ts";

/** A host, as a URL or a setting names it, and a port. */
export interface Listener {
  readonly host: string;
  readonly port: number;
}

/**
 * Where this server can be reached, and so must not deliver to: its listener (on a wildcard address, every address of
 * this machine) and its public URL.
 * @param port the one it listens on, which the configuration may have left open
 */
export function ownListenersOf(config: Pick<Config, "host" | "publicUrl">, port: number): Listener[] {
  const isWildcard = config.host === "0.0.0.0" || config.host === "::";
  const addresses = isWildcard ? Object.values(networkInterfaces()).flatMap((list) => list ?? []) : [];
  const hosts = [config.host, ...addresses.map(({ address }) => address)];
  const own = hosts.map((host) => ({ host, port }));
  if (config.publicUrl === null) return [...own, { host: "localhost", port }];
  const { hostname, port: publicPort, protocol } = new URL(config.publicUrl);
  return [
    ...own,
    { host: hostname, port: publicPort === "" ? (protocol === "https:" ? 443 : 80) : Number(publicPort) },
  ];
}

/** The form in which servers that share a store tell each other: `10.0.0.1:8080,[fd00::1]:8080`. */
export const listenersText = (listeners: readonly Listener[]): string =>
  [...new Set(listeners.map(({ host, port }) => `${isBareIpv6(host) ? `[${host}]` : host}:${port}`))].join(",");

/** The listeners in such a text. Anything else that another release may have put there is ignored. */
export const listenersIn = (text: string): Listener[] =>
  text.split(",").flatMap((one) => {
    const [, host, port] = /^(.+):(\d{1,5})$/.exec(one) ?? [];
    return host === undefined ? [] : [{ host, port: Number(port) }];
  });

const isBareIpv6 = (host: string) => host.includes(":") && !host.startsWith("[");
