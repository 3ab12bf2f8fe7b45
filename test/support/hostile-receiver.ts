import net from "node:net";
import tls from "node:tls";
import { gzipSync } from "node:zlib";

/**
 * A receiver that does what no well-behaved HTTP library lets a server do: it writes whatever bytes it likes, whenever it
 * likes. The behaviours below are those of hazards, section 4.
 */
export interface HostileReceiver {
  readonly port: number;
  /** Connections accepted so far. */
  connections(): number;
  /** Complete requests received, over all connections. */
  requests(): number;
  /** How long the longest connection that has ended lasted. */
  longestMs(): number;
  /** Resolves when the first connection has ended. */
  readonly disconnected: Promise<void>;
  close(): void;
}

/** What it does when a complete request has arrived; `nth` counts them on this connection, from 1. */
export type Behaviour = (peer: net.Socket, nth: number) => void;

export interface HostileReceiverOptions {
  /** Called for each complete request. */
  onRequest?: Behaviour;
  /**
   * Called for each connection, instead of reading requests: for what happens before HTTP, or before the request is
   * complete.
   */
  onConnection?: (peer: net.Socket) => void;
  /** Called for every new connection, with the address that was dialled. */
  onDialled?: (address: string) => void;
  /** Serves TLS; `onConnection` then runs after the handshake. */
  tls?: tls.TlsOptions | undefined;
  /** @default 127.0.0.1 */
  host?: string;
  /** @default any free one */
  port?: number;
}

export async function startHostileReceiver(options: HostileReceiverOptions): Promise<HostileReceiver> {
  const { onRequest = answerOk, onConnection, host = "127.0.0.1" } = options;
  const peers = new Set<net.Socket>();
  const disconnected = Promise.withResolvers<void>();
  let connections = 0;
  let requests = 0;
  let longestMs = 0;

  function track(peer: net.Socket) {
    const startedAt = performance.now();
    peers.add(peer);
    peer.on("error", () => {});
    peer.on("close", () => {
      peers.delete(peer);
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      disconnected.resolve();
    });
  }

  function serve(peer: net.Socket) {
    if (onConnection !== undefined) return onConnection(peer);
    let nth = 0;
    let pending: Buffer = Buffer.alloc(0);
    peer.on("data", (data: Buffer) => {
      pending = Buffer.concat([pending, data]);
      for (let length = requestLength(pending); length !== null; length = requestLength(pending)) {
        pending = pending.subarray(length);
        requests++;
        nth++;
        onRequest(peer, nth);
      }
    });
  }

  const server = options.tls === undefined ? net.createServer() : tls.createServer(options.tls);
  server.on("connection", (peer: net.Socket) => {
    connections++;
    options.onDialled?.(peer.localAddress ?? "");
    track(peer);
    if (options.tls === undefined) serve(peer);
  });
  if (options.tls !== undefined) server.on("secureConnection", serve);

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  return {
    port: (server.address() as net.AddressInfo).port,
    connections: () => connections,
    requests: () => requests,
    longestMs: () => longestMs,
    disconnected: disconnected.promise,
    close() {
      server.close();
      for (const peer of peers) peer.destroy();
    },
  };
}

/**
 * A port that swallows the first packet of every connection, as a firewall does: a process that listens but accepts
 * nothing, and whose queue of pending connections is full.
 */
export async function startDeafReceiver(): Promise<{ port: number; close(): void }> {
  const program = `
    const server = require("node:net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
      process.stdout.write(String(server.address().port), () => {
        // Not in the event loop, which would take the connections; and not for longer than there is somebody to see it.
        while (process.ppid === ${process.pid}) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
        process.exit();
      });
    });`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "ignore" });
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));

  const waiting: net.Socket[] = [];
  for (let taken = true; taken; ) {
    const socket = net.connect(port, "127.0.0.1");
    waiting.push(socket);
    taken = await new Promise<boolean>((resolve) => {
      // On loopback, a queue with room responds in microseconds; silence means that it is full.
      const timer = setTimeout(resolve, 100, false);
      socket.once("error", () => resolve(false));
      socket.once("connect", () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }
  return {
    port,
    close() {
      for (const socket of waiting) socket.destroy();
      child.kill();
    },
  };
}

/** The length of the first request in `bytes`; null when it is not complete yet. */
function requestLength(bytes: Buffer): number | null {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd === -1) return null;
  const contentLength = /^content-length: (\d+)\r?$/im.exec(bytes.toString("latin1", 0, headEnd))?.[1] ?? "0";
  const length = headEnd + 4 + Number(contentLength);
  return bytes.length >= length ? length : null;
}

/** A response head with its final empty line. */
export const head = (status: number | string, ...headers: string[]) =>
  `${[`HTTP/1.1 ${status} Whatever`, ...headers].join("\r\n")}\r\n\r\n`;

/** Writes any text, and leaves the connection open. */
export const write =
  (text: string | Uint8Array): Behaviour =>
  (peer) => {
    peer.write(text);
  };

/** Writes one text and closes the connection cleanly. */
export const writeAndEnd =
  (text: string): Behaviour =>
  (peer) => {
    peer.end(text);
  };

/** Writes one text and ends the connection with a reset, late enough not to overtake the text in the other side's kernel. */
export const writeAndReset =
  (text: string): Behaviour =>
  (peer) => {
    peer.write(text);
    setTimeout(() => peer.resetAndDestroy(), 20);
  };

/** Writes the parts of `text(n)`, n = 0, 1, …, for as long as the other side listens. */
export const trickle =
  (start: string, everyMs: number, part: (n: number) => string): Behaviour =>
  (peer) => {
    let n = 0;
    if (start !== "") peer.write(start);
    const timer = setInterval(() => peer.write(part(n++)), everyMs);
    peer.on("close", () => clearInterval(timer));
  };

/** Repeats `part` as fast as the other side reads, without end. */
export const flood =
  (start: string, part: string): Behaviour =>
  (peer) => {
    const parts = part.repeat(Math.ceil(65_536 / part.length));
    const pour = () => {
      while (!peer.destroyed && peer.write(parts));
    };
    peer.on("drain", pour);
    peer.write(start);
    pour();
  };

export const answerOk = write(`${head(200, "Content-Length: 2")}ok`);

export const never: Behaviour = () => {};

/** 32 MB of zeros in 32 KB, declared as what it is. */
export function gzipBomb(): Uint8Array {
  const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024));
  return Buffer.concat([Buffer.from(head(200, "Content-Encoding: gzip", `Content-Length: ${bomb.length}`)), bomb]);
}
