import { connect } from "node:net";

/** One answer as it arrived over the connection. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bodyText: string;
}

/** Far more than any answer takes; the listener closes an idle connection only after half a minute. */
const quietMs = 25_000;

/**
 * Sends the pieces one after another, each in its own write, and reads until the server closes the connection.
 * @returns what arrived, in order, without interim answers
 * @throws Error when the server neither answers nor closes the connection, or sends something that is not HTTP/1.1
 */
export async function exchange(url: string, pieces: readonly Uint8Array[]): Promise<WireAnswer[]> {
  const received: Buffer[] = [];
  await new Promise<void>((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.setNoDelay(true);
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`The connection was left open, after ${JSON.stringify(Buffer.concat(received).toString())}`));
    }, quietMs);
    socket.on("data", (bytes: Buffer) => received.push(bytes));
    // A server that has answered may reset a connection that it no longer wants.
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
    socket.once("connect", () => void writeAll(socket.write.bind(socket), pieces));
  });
  return answersIn(Buffer.concat(received));
}

/** Sends the pieces and disconnects, without waiting for an answer. */
export async function abandon(url: string, pieces: readonly Uint8Array[]): Promise<void> {
  await new Promise<void>((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    socket.once("connect", async () => {
      await writeAll(socket.write.bind(socket), pieces);
      socket.destroy();
    });
  });
}

type Write = (bytes: Uint8Array, done: () => void) => boolean;

async function writeAll(write: Write, pieces: readonly Uint8Array[]): Promise<void> {
  for (const piece of pieces) await new Promise<void>((resolve) => write(piece, () => setImmediate(resolve)));
}

function answersIn(bytes: Buffer): WireAnswer[] {
  const answers: WireAnswer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const headEnd = bytes.indexOf("\r\n\r\n", at);
    const [line = "", ...fields] = bytes.toString("latin1", at, Math.max(at, headEnd)).split("\r\n");
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]);
    if (headEnd < 0 || !status) throw new Error(`No HTTP answer: ${JSON.stringify(bytes.toString("latin1", at))}`);
    const headers = new Headers(
      fields.map((field): [string, string] => [field.split(":")[0] ?? "", field.replace(/^[^:]*:\s*/, "")]),
    );
    const bodyEnd = headEnd + 4 + Number(headers.get("content-length") ?? 0);
    if (status >= 200) answers.push({ status, headers, bodyText: bytes.toString("utf8", headEnd + 4, bodyEnd) });
    at = bodyEnd;
  }
  return answers;
}
