import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const port = 5432;

/** Sits between a client and its database, and cuts their connection when told to. */
export interface CuttingProxy {
  /** The URL of the same database, through the proxy. */
  readonly url: string;
  /**
   * Cuts a connection instead of forwarding the next data: a request or an answer that never arrives. If a text is given,
   * waits for the next data that contains it. Resolves when the connection has been cut.
   */
  cutNext(what: "request" | "answer", text?: string): Promise<void>;
  /** Cuts all connections, and forwards nothing any more. */
  cutOff(): void;
  /** Forwards again. */
  mend(): void;
  close(): Promise<void>;
}

export async function createCuttingProxy(target: string): Promise<CuttingProxy> {
  const folder = mkdtempSync(join(tmpdir(), "postrider-proxy-"));
  const to = new URL(target);
  const path = to.searchParams.get("path");
  const dial = () =>
    path === null ? connect(Number(to.port || port), to.hostname) : connect(join(path, `.s.PGSQL.${to.port || port}`));
  let next: { what: "request" | "answer"; text: string; resolve(): void } | null = null;
  let isOff = false;
  const cuts = new Set<() => void>();

  const server = createServer((client) => {
    if (isOff) return void client.destroy();
    const upstream = dial();
    const cut = () => {
      cuts.delete(cut);
      client.destroy();
      upstream.destroy();
    };
    cuts.add(cut);
    const pass = (from: Socket, on: Socket, what: "request" | "answer") =>
      from.on("data", (data) => {
        if (next?.what !== what || !data.includes(next.text)) return void on.write(data);
        next.resolve();
        next = null;
        cut();
      });
    pass(client, upstream, "request");
    pass(upstream, client, "answer");
    for (const socket of [client, upstream]) socket.on("error", cut).on("close", cut);
  });
  server.listen(join(folder, `.s.PGSQL.${port}`));
  await once(server, "listening");

  const url = new URL(target);
  url.host = `localhost:${port}`;
  url.searchParams.set("path", folder);
  return {
    url: url.href,
    cutNext(what, text = "") {
      const { promise, resolve } = Promise.withResolvers<void>();
      next = { what, text, resolve };
      return promise;
    },
    cutOff() {
      isOff = true;
      for (const cut of [...cuts]) cut();
    },
    mend() {
      isOff = false;
    },
    async close() {
      server.close();
      rmSync(folder, { recursive: true });
    },
  };
}
