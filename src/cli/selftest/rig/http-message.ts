/**
 * One HTTP/1.1 message as it came over the wire. The self-test reads and writes HTTP itself on both sides of the server: a
 * library would resend a request automatically when the server dies, and what arrives must be preserved byte for byte.
 */
export interface Message {
  /** `POST /hook/1 HTTP/1.1` or `HTTP/1.1 202 Accepted`. */
  readonly startLine: string;
  /** Keyed by lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

const headEnd = Buffer.from("\r\n\r\n");

/**
 * Takes bytes as they arrive and hands over each message once it is whole.
 * @throws Error for a message whose length is not given by `Content-Length`
 */
export function createMessageReader(onMessage: (message: Message) => void): (chunk: Uint8Array) => void {
  let pending = Buffer.alloc(0);
  return (chunk) => {
    // Always a copy: a chunk's memory belongs to the socket.
    pending = Buffer.concat([pending, chunk]);
    for (;;) {
      const headLength = pending.indexOf(headEnd);
      if (headLength === -1) return;
      const { startLine, headers } = readHead(pending.toString("latin1", 0, headLength));
      const bodyAt = headLength + headEnd.length;
      const end = bodyAt + lengthOf(startLine, headers);
      if (pending.length < end) return;
      const body = pending.subarray(bodyAt, end);
      pending = pending.subarray(end);
      onMessage({ startLine, headers, body });
    }
  };
}

function readHead(text: string): Pick<Message, "startLine" | "headers"> {
  const [startLine = "", ...lines] = text.split("\r\n");
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return { startLine, headers };
}

function lengthOf(startLine: string, headers: ReadonlyMap<string, string>): number {
  const given = headers.get("content-length");
  if (given !== undefined && /^\d+$/.test(given)) return Number(given);
  if (headers.has("transfer-encoding")) throw new Error(`"${startLine}" has no Content-Length`);
  return 0;
}

/** 202 for `HTTP/1.1 202 Accepted`. */
export const statusIn = ({ startLine }: Message): number => Number(startLine.split(" ", 2)[1]);

export function writeMessage(startLine: string, headers: Readonly<Record<string, string>>, body: Uint8Array): Buffer {
  const lines = Object.entries({ ...headers, "Content-Length": String(body.length) });
  const head = [startLine, ...lines.map(([name, value]) => `${name}: ${value}`), "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}
