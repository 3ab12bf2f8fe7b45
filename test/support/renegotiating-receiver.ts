import type { Certificate } from "./certificates.ts";
import { type Expected, noResponse, responded } from "./expected-outcome.ts";

/** A receiver that renegotiates TLS in the middle of a request, and the outcome that an attempt must have. */
export type RenegotiationRow = [title: string, how: "once" | "without end", expected: Expected];

export const renegotiations: readonly RenegotiationRow[] = [
  ["is negotiated anew, answers", "once", responded(200)],
  ["is negotiated anew without end is refused", "without end", noResponse("tls_failed", "TLS handshake failed")],
];

const node = Bun.which("node");

/** As a server, the runtime's own TLS cannot request it; that of Node.js can. */
export const canRenegotiate =
  node !== null && Bun.spawnSync([node, "-p", "process.versions.bun ?? 'node'"]).stdout.toString().trim() === "node";

/** It ends with its standard input, and so with the process that started it. */
const program = `
const tls = require("node:tls");
// Its own defence against clients that ask for it.
tls.CLIENT_RENEG_LIMIT = Number.POSITIVE_INFINITY;
process.stdin.once("data", (settings) => {
  const { cert, key, isEndless } = JSON.parse(settings);
  const server = tls.createServer({ cert, key, maxVersion: "TLSv1.2" }, (peer) => {
    peer.on("error", () => {});
    const ask = () =>
      peer.renegotiate({ requestCert: true, rejectUnauthorized: false }, (error) => {
        if (error) return;
        if (isEndless) ask();
        else peer.end("HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n");
      });
    peer.once("data", ask);
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
});
process.stdin.on("end", () => process.exit());
`;

export async function startRenegotiatingReceiver(
  { cert, key }: Certificate,
  how: "once" | "without end",
): Promise<{ port: number; close(): void }> {
  if (node === null) throw new Error("Only the TLS of Node.js can ask for it, and there is none.");
  const child = Bun.spawn([node, "-e", program], { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
  child.stdin.write(JSON.stringify({ cert, key, isEndless: how === "without end" }));
  child.stdin.flush();
  const { value } = await child.stdout.getReader().read();
  return { port: Number(new TextDecoder().decode(value)), close: () => void child.stdin.end() };
}
