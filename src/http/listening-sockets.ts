import { ptr } from "bun:ffi";
import { readdirSync } from "node:fs";
import { portOf, type SocketCalls, socketCalls, solSocket } from "./socket-calls.ts";

/** The descriptors of this process's listeners on a port; none where the system's calls are not to be had. */
export function findListeners(port: number): number[] {
  const calls = socketCalls();
  if (calls === null) return [];
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((descriptor) => portOf(calls, descriptor) === port && isListening(calls, descriptor));
}

/** Whether a descriptor is that of a socket that accepts connections (socket(7), `SO_ACCEPTCONN`). */
export function isListening(calls: SocketCalls, descriptor: number): boolean {
  flagBytes[0] = flag.byteLength;
  return calls.getsockopt(descriptor, solSocket, acceptsConnections, ptr(flag), ptr(flagBytes)) === 0 && flag[0] === 1;
}

const acceptsConnections = 30;
const flag = new Uint32Array(1);
const flagBytes = new Uint32Array(1);
