import { connect, type Socket } from "node:net";

/** A client that writes what it likes, byte for byte: even what `fetch` and `node:http` would refuse to send. */
export interface RawPeer {
  readonly socket: Socket;
  /** What has arrived so far. */
  received(): string;
  write(bytes: string | Uint8Array): void;
  /** Resolves with everything received as soon as it fits, and rejects when the connection ends before that. */
  until(fits: (received: string) => boolean): Promise<string>;
  /** Resolves with everything received when the server has closed the connection. */
  readonly closed: Promise<string>;
  /** Ends the connection like a crash: with a reset. */
  reset(): void;
}

export async function connectRaw(serverUrl: string): Promise<RawPeer> {
  const socket = connect(Number(new URL(serverUrl).port), "127.0.0.1");
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  const waiting = new Set<() => void>();
  let text = "";
  let isClosed = false;
  const look = () => {
    for (const one of [...waiting]) one();
  };
  // After a reset there is nothing more to read; `closed` says so.
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    look();
  });
  socket.on("close", () => {
    isClosed = true;
    resolve(text);
    look();
  });
  await new Promise<void>((connected) => socket.once("connect", connected));

  return {
    socket,
    received: () => text,
    write: (bytes) => void (socket.writable && socket.write(bytes)),
    until: (fits) =>
      new Promise((found, failed) => {
        const one = () => {
          if (!fits(text) && !isClosed) return;
          waiting.delete(one);
          if (fits(text)) found(text);
          else failed(new Error(`The connection ended after: ${text}`));
        };
        waiting.add(one);
        one();
      }),
    closed,
    reset: () => void socket.resetAndDestroy(),
  };
}

/** The status of the first answer; 0 while there is none. */
export const statusOf = (received: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? 0);

/** A request head without the final empty line: the lines of `fields` follow the first one and `Host`. */
export const headOf = (method: string, path: string, fields: Readonly<Record<string, string>> = {}): string =>
  [
    `${method} ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
    "",
  ].join("\r\n");
