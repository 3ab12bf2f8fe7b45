import type { Config } from "./config.ts";
import { type Listener, ownListenersOf } from "./delivery/network/own-listeners.ts";

/** The addresses under which this server is known. Most are only available once it listens: the port may be any free one. */
export interface ServerAddress {
  /** `{base_url}`: where others reach it, without a slash at the end. */
  publicUrl(): string;
  /** Where it can be reached on this machine; empty until it listens. */
  localUrl(): string;
  /** Where nothing may be delivered: see `ownListenersOf`. The list grows. */
  readonly ownListeners: readonly Listener[];
  listensOn(port: number): void;
  answersProbesOn(port: number): void;
}

export function createServerAddress(config: Pick<Config, "host" | "publicUrl" | "tls">): ServerAddress {
  const { host } = config;
  const scheme = config.tls ? "https" : "http";
  const ownListeners: Listener[] = [];
  let publicUrl = config.publicUrl ?? "";
  let localUrl = "";

  return {
    publicUrl: () => publicUrl,
    localUrl: () => localUrl,
    ownListeners,
    listensOn(port) {
      ownListeners.push(...ownListenersOf(config, port));
      publicUrl = config.publicUrl ?? `${scheme}://localhost:${port}`;
      localUrl = `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
    },
    answersProbesOn(port) {
      ownListeners.push(...ownListenersOf({ host, publicUrl: null }, port));
    },
  };
}
