import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const port = 5432;

/** Calls `take` with each complete message: a letter, its length in four bytes, and the rest. */
function split(take: (message: Buffer) => void): (data: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (data) => {
    rest = Buffer.concat([rest, data]);
    while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
      const end = rest.readUInt32BE(1) + 1;
      take(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
  };
}

const message = (letter: string, ...bytes: number[]) =>
  Buffer.from([letter.charCodeAt(0), 0, 0, 0, bytes.length + 4, ...bytes]);
const authenticated = message("R", 0, 0, 0, 0);
const ready = message("Z", "I".charCodeAt(0));

/**
 * A minimal transaction pooler: a client that begins a transaction gets the server connection that became free most
 * recently, for as long as the transaction lasts. Two connections, no passwords, over Unix sockets.
 */
export async function createTransactionPooler(target: string): Promise<{ url: string; close(): void }> {
  const folder = mkdtempSync(join(tmpdir(), "postrider-pooler-"));
  const to = new URL(target);
  const idle = await Promise.all([1, 2].map(() => dial(to)));
  const open = [...idle];

  const server = createServer((client) => {
    let isStarted = false;
    let held: Socket | null = null;
    /** Requests that have not been fully answered. */
    let unanswered = 0;
    const answer = split((one) => {
      client.write(one);
      const isReady = one[0] === ready[0];
      if (isReady) unanswered -= 1;
      if (!isReady || unanswered > 0 || one[5] !== ready[5] || held === null) return;
      held.off("data", answer);
      idle.push(held);
      held = null;
    });
    const request = split((one) => {
      if (one[0] === "X".charCodeAt(0)) return;
      if (held === null) {
        held = idle.pop() ?? null;
        held?.on("data", answer);
      }
      if (one[0] === "S".charCodeAt(0) || one[0] === "Q".charCodeAt(0)) unanswered += 1;
      held?.write(one);
    });
    client.on("data", (data: Buffer) => {
      if (isStarted) return request(data);
      isStarted = true;
      client.write(Buffer.concat([authenticated, ready]));
      request(data.subarray(data.readUInt32BE(0)));
    });
    client.on("error", () => {});
    open.push(client);
  });
  server.listen(join(folder, `.s.PGSQL.${port}`));
  await once(server, "listening");

  const url = new URL(target);
  url.host = `localhost:${port}`;
  url.searchParams.set("path", folder);
  return {
    url: url.href,
    close() {
      server.close();
      for (const socket of open) socket.destroy();
      rmSync(folder, { recursive: true });
    },
  };
}

/** A connection that accepts requests; only over a Unix socket, which needs no password. */
async function dial(to: URL): Promise<Socket> {
  const socket = connect(join(to.searchParams.get("path") ?? "", `.s.PGSQL.${to.port || port}`));
  const words = ["user", to.username, "database", to.pathname.slice(1), "statement_timeout", "10000", ""];
  const body = Buffer.from(`${words.join("\0")}\0`);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length + 8, 0);
  head.writeUInt32BE(3 << 16, 4);
  socket.write(Buffer.concat([head, body]));
  await new Promise<void>((resolve, reject) => {
    const take = split((one) => {
      if (one[0] !== ready[0]) return;
      socket.off("data", take);
      resolve();
    });
    socket.on("data", take).on("error", reject);
  });
  return socket;
}
