import { connect, createServer, type Socket } from "node:net";

/** A line to a server that a test can cut: bytes go through as they are, until they do not. */
export interface Wire {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /** Ends every connection at once; later ones go through again. */
  cut(): void;
  /** Ends every connection, and each new one as soon as it is made, until `mend`. */
  break(): void;
  mend(): void;
  /** Connections that were made so far. */
  readonly connections: number;
  /** Resolves when a text has gone through towards the server `n` times, also if that was before. */
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
