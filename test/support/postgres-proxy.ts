import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const port = 5432;

/** Stands between a client and its database, and cuts their connection when it is told to. */
export interface CuttingProxy {
  /** Of the same database, by way of the proxy. */
  readonly url: string;
  /**
   * Cuts a connection in place of passing the next data on: a request that never arrives, or an answer that does not; the next
   * with this text in it, if one is given. Resolves when it has.
   */
  cutNext(what: "request" | "answer", text?: string): Promise<void>;
  /** Cuts all connections, and passes nothing on any more. */
  cutOff(): void;
  /** Passes on again. */
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
