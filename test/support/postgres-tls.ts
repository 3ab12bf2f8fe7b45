import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { TLSSocket } from "node:tls";
import type { Certificate } from "./certificates.ts";

/** What a client of PostgreSQL that asks for TLS is connected to. */
export interface TlsFront {
  /** With `sslmode=verify-full`. */
  readonly url: string;
  /** Ends every connection; those made from now on are shown this certificate. */
  show(certificate: Certificate): void;
  /** Answers the next request that contains the text with what is no TLS. */
  garbleNext(text: string): void;
  close(): void;
}

/** @param target the URL of a database; without one, nothing follows the handshake */
export async function createTlsFront(certificate: Certificate, target?: string): Promise<TlsFront> {
  let shown = certificate;
  let garbled: string | null = null;
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.on("error", () => {}).on("close", () => clients.delete(client));
    // The first message asks for TLS.
    client.once("data", () => {
      client.write("S");
      const secure = new TLSSocket(client, { isServer: true, cert: shown.cert, key: shown.key });
      secure.on("error", () => {});
      if (target === undefined) return;
      const upstream = dial(new URL(target)).on("error", () => client.destroy());
      client.on("close", () => upstream.destroy());
      upstream.pipe(secure);
      secure.on("data", (data) => {
        if (garbled === null || !data.includes(garbled)) return void upstream.write(data);
        garbled = null;
        client.write(Buffer.concat([applicationData, Buffer.alloc(40, 7)]));
      });
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = new URL(target ?? "postgres://localhost/postrider");
  url.host = `localhost:${(server.address() as AddressInfo).port}`;
  url.searchParams.delete("path");
  url.searchParams.set("sslmode", "verify-full");
  return {
    url: url.href,
    show(next) {
      shown = next;
      for (const client of clients) client.destroy();
    },
    garbleNext(text) {
      garbled = text;
    },
    close: () => server.close(),
  };
}

function dial({ hostname, port, searchParams }: URL): Socket {
  const path = searchParams.get("path");
  return path === null ? connect(Number(port || 5432), hostname) : connect(join(path, `.s.PGSQL.${port || 5432}`));
}

/** The beginning of a record of 40 bytes (RFC 8446, section 5.1). */
const applicationData = Buffer.from([0x17, 3, 3, 0, 40]);
