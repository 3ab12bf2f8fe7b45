import { ptr } from "bun:ffi";
import { socketCalls, solSocket } from "../lib/socket-calls.ts";
import { findListeners } from "./listening-sockets.ts";

/** Whether several listeners can share a port here, with `steerConnections` choosing which of them gets new connections. */
export const canSharePorts = (): boolean => socketCalls() !== null;

/**
 * Gives every new connection to one of the listeners that share a port (`SO_REUSEPORT`).
 *
 * Linux distributes connections by a hash. A listener that closes resets those it was given but has not accepted yet, so a
 * port that changes hands would lose some. Once it gets no new ones, it can accept what it has and then close. The program
 * attached here (classic BPF, which needs no privilege; socket(7), `SO_ATTACH_REUSEPORT_CBPF`) returns the same place for
 * each connection. It belongs to the group, so it can be attached through any listener of this process.
 *
 * @param place among the listeners in the order in which they began; where one has closed, the last one takes its place. If
 *   there is no listener at this place, the hash decides again.
 * @returns false when this process has no listener there, or the system does not allow it
 */
export function steerConnections(port: number, place: number): boolean {
  const calls = socketCalls();
  if (calls === null) return false;
  const [listener] = findListeners(calls, port);
  if (listener === undefined) return false;
  const program = new DataView(new ArrayBuffer(instructionBytes));
  program.setUint16(0, returnConstant, true);
  program.setUint32(4, place, true);
  // struct sock_fprog: the number of instructions, and a pointer to them.
  const description = new BigUint64Array([1n, BigInt(ptr(program.buffer as ArrayBuffer))]);
  return calls.setsockopt(listener, solSocket, attachReuseportCbpf, ptr(description), description.byteLength) === 0;
}

const attachReuseportCbpf = 51;
/** `struct sock_filter`: code, two jumps, constant. */
const instructionBytes = 8;
/** BPF_RET | BPF_K. */
const returnConstant = 0x06;
