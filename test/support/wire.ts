import { connect, createServer, type Socket } from "node:net";

/** A line to a server that a test can cut: bytes pass through unchanged until then. */
export interface Wire {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /** Closes every connection immediately; later ones pass through again. */
  cut(): void;
  /** Closes every connection, and each new one as soon as it is made, until `mend`. */
  break(): void;
  mend(): void;
  /** The number of connections made so far. */
  readonly connections: number;
  /** Resolves when a text has been sent to the server `n` times, including earlier ones. */
  whenSent(text: string, n?: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startWire(targetUrl: string): Promise<Wire> {
  const { port: targetPort } = new URL(targetUrl);
  const sockets = new Set<Socket>();
  const waiting = new Set<() => void>();
  let sent = "";
  let broken = false;
  let connections = 0;

  const server = createServer((client) => {
    connections += 1;
    for (const look of [...waiting]) look();
    if (broken) return void client.destroy();
    const upstream = connect(Number(targetPort), "127.0.0.1");
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.on("data", (bytes) => {
      sent += bytes.toString("latin1");
      for (const look of [...waiting]) look();
    });
    client.pipe(upstream);
    upstream.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;

  function cut(): void {
    for (const socket of [...sockets]) socket.destroy();
  }

  const when = (holds: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!holds()) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });

  return {
    url: `http://127.0.0.1:${port}`,
    cut,
    break() {
      broken = true;
      cut();
    },
    mend() {
      broken = false;
    },
    get connections() {
      return connections;
    },
    whenSent: (text, n = 1) => when(() => sent.split(text).length > n),
    async stop() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
