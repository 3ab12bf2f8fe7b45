import { connect, createServer, type Socket } from "node:net";

/**
 * A forward proxy as found in offices: it opens tunnels (RFC 9110, section 9.3.6) to a single port, whatever name is
 * requested.
 */
export interface ConnectProxy {
  readonly url: string;
  /** The first line of every request. */
  readonly requests: readonly string[];
  /** The whole head of every request. */
  readonly heads: readonly string[];
  stop(): Promise<void>;
}

/** @param targetPort null: it refuses all requests */
export async function startConnectProxy(targetPort: number | null): Promise<ConnectProxy> {
  const requests: string[] = [];
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    sockets.add(client);
    client.on("error", () => {});
    client.on("close", () => sockets.delete(client));
    client.once("data", (head) => {
      const line = head.toString("latin1").split("\r\n", 1)[0] ?? "";
      requests.push(line);
      heads.push(head.toString("latin1"));
      if (targetPort === null || !line.startsWith("CONNECT ")) {
        return void client.end("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
      }
      const upstream = connect(targetPort, "127.0.0.1", () => {
        client.write("HTTP/1.1 200 OK\r\n\r\n");
        client.pipe(upstream);
        upstream.pipe(client);
      });
      upstream.on("error", () => client.destroy());
      client.on("close", () => upstream.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    requests,
    heads,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
