import { ptr } from "bun:ffi";
import { socketCalls, solSocket } from "../lib/socket-calls.ts";
import { findListeners } from "./listening-sockets.ts";

/** Whether several listeners can share a port here, and `steerConnections` say which of them gets what comes. */
export const canSharePorts = (): boolean => socketCalls() !== null;

/**
 * Of the listeners that share a port (`SO_REUSEPORT`), gives every new connection to one.
 *
 * Linux hands them out by a hash. A listener that closes resets those that it was given and has not accepted yet, so a port
 * that changes hands would lose some. Once no new ones come, it can accept what it has and close. The program attached here
 * (classic BPF, which needs no privilege; socket(7), `SO_ATTACH_REUSEPORT_CBPF`) answers the same place for each connection. It
 * belongs to the group, so any listener of this process will do to attach it.
 *
 * @param place among the listeners in the order in which they began; where one has closed, the last stands in its place. If
 * there is none, the hash decides again.
 * @returns false when this process has no listener there, or the system does not let it
 */
export function steerConnections(port: number, place: number): boolean {
  const calls = socketCalls();
  if (calls === null) return false;
  const [listener] = findListeners(calls, port);
  if (listener === undefined) return false;
  const program = new DataView(new ArrayBuffer(instructionBytes));
  program.setUint16(0, returnConstant, true);
  program.setUint32(4, place, true);
  // struct sock_fprog: the count of instructions, and where they are.
  const description = new BigUint64Array([1n, BigInt(ptr(program.buffer as ArrayBuffer))]);
  return calls.setsockopt(listener, solSocket, attachReuseportCbpf, ptr(description), description.byteLength) === 0;
}

const attachReuseportCbpf = 51;
/** `struct sock_filter`: code, two jumps, constant. */
const instructionBytes = 8;
/** BPF_RET | BPF_K. */
const returnConstant = 0x06;
