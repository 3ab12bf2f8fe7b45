import type { Socket, SocketHandler, TCPSocketListener } from "bun";
import { nowUs, type Received, readEvent, readNumber } from "./event.ts";
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

export interface Peer {
  pending: Buffer | undefined;
}

const answer = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n");
const refusal = Buffer.from("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
const headEnd = Buffer.from("\r\n\r\n");
const pathStart = "POST /hook/";

/** What is made of the deliveries that sockets bring. */
export interface Intake {
  /** A whole one: `bytes[from, to)`, of which `event` is the event, or null when there is none. */
  take(event: Received | null, tenantOfPath: number, delivery: { bytes: Buffer; from: number; to: number }): void;
  /** After those that came in one piece. */
  taken(): void;
  /** Bytes of a payload. @default payloadBytes */
  size?: number;
}

/** The handlers of a listener, plain or TLS, that answers every delivery with 204. */
export function receiveDeliveries({ take, taken, size }: Intake): SocketHandler<Peer> {
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
      const event = readEvent(bytes, bodyAt, end, size);
      take(event, readNumber(bytes, at + pathStart.length), { bytes, from: at, to: end });
      socket.write(answer);
      at = end;
    }
    // A copy: the chunk's memory is the socket's.
    peer.pending = at < bytes.length ? Buffer.from(bytes.subarray(at)) : undefined;
    if (at > 0) taken();
  }

  return {
    open(socket) {
      socket.data = { pending: undefined };
      socket.setNoDelay(true);
    },
    data: onData,
    error() {},
  };
}

export function startReceiver(): Receiver {
  let ledger: Ledger | undefined;
  let notify = () => {};
  let wanted: ((delivery: string) => void) | undefined;

  const listener: TCPSocketListener<Peer> = Bun.listen<Peer>({
    hostname: "127.0.0.1",
    port: 0,
    socket: receiveDeliveries({
      take(event, tenantOfPath, { bytes, from, to }) {
        ledger?.noteReceived(event, tenantOfPath, nowUs());
        wanted?.(bytes.toString("utf8", from, to));
        wanted = undefined;
      },
      taken: () => notify(),
    }),
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

/** Where further webhooks of the same accounts go: it answers as the receiver does, and counts. */
export interface DeliveryCounter {
  readonly port: number;
  /** Since the last call. */
  take(): number;
  close(): void;
}

export function startDeliveryCounter(): DeliveryCounter {
  let count = 0;
  const listener: TCPSocketListener<Peer> = Bun.listen<Peer>({
    hostname: "127.0.0.1",
    port: 0,
    socket: receiveDeliveries({
      take(event) {
        if (event !== null) count++;
      },
      taken() {},
    }),
  });
  return {
    port: listener.port,
    take() {
      const taken = count;
      count = 0;
      return taken;
    },
    close: () => listener.stop(true),
  };
}

const lower = 0x20;
const letters = Buffer.from("ontent-length:");

/** NaN when there is none: a chunked delivery is none of ours. */
export function contentLengthIn(bytes: Buffer, from: number, to: number): number {
  for (let at = bytes.indexOf("ontent-", from, "latin1"); at !== -1 && at < to; at = nextField(bytes, at)) {
    if (!namesLength(bytes, at)) continue;
    let i = at + letters.length;
    while (bytes[i] === 0x20) i++;
    return readNumber(bytes, i);
  }
  return Number.NaN;
}

const nextField = (bytes: Buffer, at: number) => bytes.indexOf("ontent-", at + 1, "latin1");

function namesLength(bytes: Buffer, at: number): boolean {
  for (let i = 7; i < letters.length; i++)
    if (((bytes[at + i] ?? 0) | lower) !== ((letters[i] ?? 0) | lower)) return false;
  return true;
}
