import http from "node:http";
import https from "node:https";
import { systemClock } from "../lib/clock.ts";

export interface Call {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  body?: unknown;
  /** Deadline for the whole answer. @default as long as it keeps coming, with pauses of at most half a minute */
  withinMs?: number;
}

export interface Answer {
  status: number;
  body: Buffer;
  /** The body's value; null when it has none or is not JSON. */
  json: unknown;
}

/** One of our own servers on this machine answers immediately or not at all. */
const timeoutMs = 30_000;

/**
 * One request to a server on this machine. Uses `node:http`, because `fetch` would send it through the environment's proxy,
 * and accepts any certificate, because the connection never leaves the machine while a certificate names the public host.
 */
export function call(url: string, { method = "GET", headers = {}, body, withinMs }: Call = {}): Promise<Answer> {
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
        cancelTimer();
        resolve({ status: response.statusCode ?? 0, body: bytes, json: parse(bytes) });
      });
    });
    const giveUp = (afterMs: number) => request.destroy(new Error(`no answer within ${afterMs / 1000} s`));
    const cancelTimer = withinMs === undefined ? () => {} : systemClock.after(withinMs, () => giveUp(withinMs));
    request.on("timeout", () => giveUp(timeoutMs));
    request.on("error", (error) => {
      cancelTimer();
      reject(error);
    });
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
