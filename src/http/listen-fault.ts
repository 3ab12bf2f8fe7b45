import { StartupError } from "../domain/errors.ts";
import { codeOf, messageOf } from "../lib/error-message.ts";

/** Why the system lets nobody listen somewhere. It can be passed from a thread. */
export interface ListenFault {
  /** The system's; empty when there is none, as for a host without an address. */
  readonly code: string;
  readonly message: string;
}

export const listenFaultOf = (error: unknown): ListenFault => ({
  code: codeOf(error),
  message: messageOf(error),
});

/**
 * Listens for a moment without sharing the port: a listener that shares it would silently share it with whoever has it.
 * @throws the system's error when somebody has it
 */
export function refuseSharing(hostname: string, port: number): void {
  Bun.listen({ hostname, port, socket: { data() {} } }).stop(true);
}

export interface ListenPlace {
  readonly host: string;
  readonly port: number;
  /** The setting that names the port. */
  readonly setting: string;
}

/** @param who what would have listened, as the subject of a sentence */
export function cannotListen(who: string, place: ListenPlace, fault: ListenFault): StartupError {
  const { host, port, setting } = place;
  const { cause, remedy } = explained(fault, setting);
  const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return new StartupError(`${who} cannot listen on ${address} (${cause}). Try: ${remedy}.`);
}

function explained({ code, message }: ListenFault, setting: string): { cause: string; remedy: string } {
  switch (code) {
    case "EADDRINUSE":
      return {
        cause: "the port is in use",
        remedy: `stop whatever uses that port, or set ${setting} to another one`,
      };
    case "EACCES":
      return {
        cause: "the server's user may not use this port",
        remedy: `set ${setting} to 1024 or above, or give the server the capability CAP_NET_BIND_SERVICE (Linux)`,
      };
    case "EADDRNOTAVAIL":
      return {
        cause: "this machine has no such address",
        remedy: "set POSTRIDER_HOST to one of its addresses, or to 0.0.0.0 for all of them",
      };
    default:
      return { cause: message, remedy: `check POSTRIDER_HOST and ${setting}` };
  }
}
