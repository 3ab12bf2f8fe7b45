import http from "node:http";
import https from "node:https";

export interface Call {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  body?: unknown;
}

export interface Answer {
  status: number;
  body: Buffer;
  /** The body's value; null when it has none or is not JSON. */
  json: unknown;
}

/** A server of ours on this machine answers at once or not at all. */
const timeoutMs = 30_000;

/**
 * One request to a server on this machine. By `node:http`, because `fetch` would hand it to a proxy of the environment;
 * and any certificate will do, because the connection never leaves the machine and a certificate names the public host.
 */
export function call(url: string, { method = "GET", headers = {}, body }: Call = {}): Promise<Answer> {
  const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const options = {
    method,
    timeout: timeoutMs,
    headers: {
      ...headers,
      ...(content && { "Content-Type": "application/json", "Content-Length": String(content.length) }),
    },
  };
  return new Promise((resolve, reject) => {
    const request = url.startsWith("https:")
      ? https.request(url, { ...options, rejectUnauthorized: false })
      : http.request(url, options);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const bytes = Buffer.concat(chunks);
        resolve({ status: response.statusCode ?? 0, body: bytes, json: parse(bytes) });
      });
    });
    request.on("timeout", () => request.destroy(new Error(`${url} did not answer within ${timeoutMs / 1000} s`)));
    request.on("error", reject);
    request.end(content);
  });
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return null;
  }
}
