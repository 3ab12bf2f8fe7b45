import { dlopen, ptr } from "bun:ffi";

const signatures = {
  getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  shutdown: { args: ["i32", "i32"], returns: "i32" },
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i64" },
  close: { args: ["i32"], returns: "i32" },
  dup3: { args: ["i32", "i32", "i32"], returns: "i32" },
} as const;

/** What the runtime does not offer for sockets: the system's own calls, by descriptor. */
export type SocketCalls = ReturnType<typeof dlopen<typeof signatures>>["symbols"];

/** The C libraries of Linux: glibc, and musl on both processors. */
const libraryNames = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

let opened: SocketCalls | null | undefined;

/** The library is already in memory, so this needs no descriptor. Null: not Linux, and the runtime's own means must do. */
export function socketCalls(): SocketCalls | null {
  if (opened === undefined) opened = open();
  return opened;
}

function open(): SocketCalls | null {
  if (process.platform !== "linux") return null;
  for (const name of libraryNames) {
    try {
      return dlopen(name, signatures).symbols;
    } catch {
      // Another C library.
    }
  }
  return null;
}

const address = new Uint8Array(128);
const length = new Uint32Array(1);

/** `sockaddr` of the two families that have ports; the family comes first, least significant byte first. */
const inet = 2;
const inet6 = 10;

/** The local port that a descriptor is bound to; null if it is not an internet socket. */
export function portOf(calls: SocketCalls, descriptor: number): number | null {
  length[0] = address.length;
  if (calls.getsockname(descriptor, ptr(address), ptr(length)) !== 0) return null;
  if (address[0] !== inet && address[0] !== inet6) return null;
  // The port is at the same place in addresses of both families, most significant byte first.
  return ((address[2] ?? 0) << 8) + (address[3] ?? 0);
}

/** An internet socket, with no address yet. @returns its descriptor, below 0 if there is none left */
export const openSocket = (calls: SocketCalls, family = inet): number => calls.socket(family, stream | closeOnExec, 0);

/** Opens a socket with the address of another one, sharing its port. @returns null if the system refuses it */
export function boundLike(calls: SocketCalls, descriptor: number): number | null {
  if (portOf(calls, descriptor) === null) return null;
  const twin = openSocket(calls, address[0]);
  if (twin < 0) return null;
  const isBound =
    calls.setsockopt(twin, solSocket, reusePort, ptr(on), on.byteLength) === 0 &&
    calls.bind(twin, ptr(address), length[0] ?? 0) === 0;
  if (isBound) return twin;
  calls.close(twin);
  return null;
}

/** `SOL_SOCKET` of Linux; the option below is its `SO_REUSEPORT`. */
export const solSocket = 1;
const reusePort = 15;
const on = Uint32Array.of(1);

const unix = 1;
const stream = 1;
const datagram = 2;
/** Not inherited, non-blocking, and no signal when nobody listens. */
export const closeOnExec = 0o2000000;
const dontWait = 0x40;
const noSignal = 0x4000;

/** Sends a datagram to a socket in the file system, or to an abstract one (`@name`). @returns false when it was not taken */
export function sendDatagram(path: string, text: string): boolean {
  const calls = socketCalls();
  if (calls === null) return false;
  const name = Buffer.from(path.replace(/^@/, "\0"));
  const target = new Uint8Array(2 + name.length);
  target[0] = unix;
  target.set(name, 2);
  const body = Buffer.from(text);
  const descriptor = calls.socket(unix, datagram | closeOnExec, 0);
  if (descriptor < 0) return false;
  const sent = calls.sendto(descriptor, ptr(body), body.length, dontWait | noSignal, ptr(target), target.length);
  calls.close(descriptor);
  return Number(sent) === body.length;
}
