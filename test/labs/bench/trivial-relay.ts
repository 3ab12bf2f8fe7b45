import type { Socket } from "bun";
import { receiverPath, tenantWidth } from "./event.ts";

/**
 * The least that can be called a relay, to find what load generator and receiver can do themselves: a `Bun.serve` that
 * answers 202 and writes the body into one of 64 sockets without looking at what comes back.
 *
 * Usage: bun trivial-relay.ts <receiver port>. Prints its own port.
 */
const connectionCount = 64;
const receiverPort = Number(process.argv[2]);
const sockets: Socket[] = [];
for (let n = 0; n < connectionCount; n++) {
  const socket = await Bun.connect({ hostname: "127.0.0.1", port: receiverPort, socket: { data() {} } });
  socket.setNoDelay(true);
  sockets.push(socket);
}

const tenantMark = '"tenant":"';
const wrapperBytes = '{"payload":'.length;
const answer = '{"status":"accepted","eventId":"evt_00000000000000000000000000"}';
const answerInit = { status: 202, headers: { "Content-Type": "application/json" } };
let next = 0;

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const body = await request.text();
    const tenantAt = body.indexOf(tenantMark) + tenantMark.length;
    const tenant = Number(body.slice(tenantAt, tenantAt + tenantWidth));
    const payload = body.slice(wrapperBytes, -1);
    const head = `POST ${receiverPath(tenant)} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${payload.length}\r\n\r\n`;
    sockets[next++ % connectionCount]?.write(head + payload);
    return new Response(answer, answerInit);
  },
});

process.stdout.write(`${server.port}\n`);
process.stdin.on("end", () => process.exit(0)).resume();
