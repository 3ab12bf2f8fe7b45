import type { Socket, TCPSocketListener } from "bun";
import { nowUs, readDigits, readEvent } from "./event.ts";
import type { Ledger } from "./ledger.ts";

/**
 * The receiver of all webhooks: `POST /hook/<nn>` → 204. Raw TCP, because it shares a process with the load generator
 * and must not be what limits the rate; it reads of HTTP only what a well-formed request with a `Content-Length` needs.
 */
export interface Receiver {
  readonly port: number;
  /** Where deliveries are noted from now on; `onReceived` is called after each batch of them. */
  attach(ledger: Ledger, onReceived: () => void): void;
  /** The next delivery as it came, head and body. */
  nextDelivery(): Promise<string>;
  close(): void;
}

interface Peer {
  pending: Buffer | undefined;
}

const answer = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n");
const refusal = Buffer.from("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
const headEnd = Buffer.from("\r\n\r\n");
const pathStart = "POST /hook/";

export function startReceiver(): Receiver {
  let ledger: Ledger | undefined;
  let notify = () => {};
  let wanted: ((delivery: string) => void) | undefined;

  function onData(socket: Socket<Peer>, chunk: Buffer) {
    const peer = socket.data;
    const bytes = peer.pending === undefined ? chunk : Buffer.concat([peer.pending, chunk]);
    let at = 0;
    while (at < bytes.length) {
      const bodyAt = bytes.indexOf(headEnd, at) + headEnd.length;
      if (bodyAt < headEnd.length) break;
      const end = bodyAt + contentLengthIn(bytes, at, bodyAt);
      if (Number.isNaN(end)) {
        socket.end(refusal);
        return;
      }
      if (end > bytes.length) break;
      takeDelivery(bytes, at, bodyAt, end);
      socket.write(answer);
      at = end;
    }
    // A copy: the chunk's memory is the socket's.
    peer.pending = at < bytes.length ? Buffer.from(bytes.subarray(at)) : undefined;
    if (at > 0) notify();
  }

  function takeDelivery(bytes: Buffer, at: number, bodyAt: number, end: number) {
    ledger?.noteReceived(readEvent(bytes, bodyAt, end), readDigits(bytes, at + pathStart.length, 2), nowUs());
    wanted?.(bytes.toString("utf8", at, end));
    wanted = undefined;
  }

  const listener: TCPSocketListener<Peer> = Bun.listen<Peer>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { pending: undefined };
        socket.setNoDelay(true);
      },
      data: onData,
      error() {},
    },
  });

  return {
    port: listener.port,
    attach(to, onReceived) {
      ledger = to;
      notify = onReceived;
    },
    nextDelivery: () =>
      new Promise((resolve) => {
        wanted = resolve;
      }),
    close: () => listener.stop(true),
  };
}

const lower = 0x20;
const letters = Buffer.from("ontent-length:");

/** NaN when there is none: a chunked delivery is none of ours. */
export function contentLengthIn(bytes: Buffer, from: number, to: number): number {
  for (let at = bytes.indexOf("ontent-", from, "latin1"); at !== -1 && at < to; at = nextField(bytes, at)) {
    if (!namesLength(bytes, at)) continue;
    let value = 0;
    let i = at + letters.length;
    while (bytes[i] === 0x20) i++;
    for (let digit = bytes[i] ?? 0; digit >= 48 && digit <= 57; digit = bytes[++i] ?? 0)
      value = value * 10 + digit - 48;
    return value;
  }
  return Number.NaN;
}

const nextField = (bytes: Buffer, at: number) => bytes.indexOf("ontent-", at + 1, "latin1");

function namesLength(bytes: Buffer, at: number): boolean {
  for (let i = 7; i < letters.length; i++)
    if (((bytes[at + i] ?? 0) | lower) !== ((letters[i] ?? 0) | lower)) return false;
  return true;
}
