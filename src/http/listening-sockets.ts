import { ptr } from "bun:ffi";
import { openDescriptors } from "../lib/descriptors.ts";
import { portOf, type SocketCalls, solSocket } from "../lib/socket-calls.ts";

/** Descriptors of this process's listeners on a port, found lazily: there may be thousands of others. */
export function* findListeners(calls: SocketCalls, port: number): Generator<number> {
  for (const descriptor of openDescriptors()) if (isListening(calls, descriptor, port)) yield descriptor;
}

/** Whether a descriptor belongs to a socket that accepts connections on this port (socket(7), `SO_ACCEPTCONN`). */
export function isListening(calls: SocketCalls, descriptor: number, port: number): boolean {
  if (portOf(calls, descriptor) !== port) return false;
  flagBytes[0] = flag.byteLength;
  return calls.getsockopt(descriptor, solSocket, acceptsConnections, ptr(flag), ptr(flagBytes)) === 0 && flag[0] === 1;
}

const acceptsConnections = 30;
const flag = new Uint32Array(1);
const flagBytes = new Uint32Array(1);
