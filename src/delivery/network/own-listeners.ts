import { networkInterfaces } from "node:os";
import type { Config } from "../../config.ts";

/**
 * Where this server can be reached, and where it must not deliver to: its listener, on a wildcard address every address of
 * this machine, and its public URL.
 * @param port that it listens on, which the configuration may have left open
 */
export function ownListenersOf(
  config: Pick<Config, "host" | "publicUrl">,
  port: number,
): { host: string; port: number }[] {
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
