import http from "node:http";
import https from "node:https";
import { systemClock } from "../lib/clock.ts";

export interface Call {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  body?: unknown;
  /** Until its answer is whole. @default as long as it goes on, with pauses of half a minute at most */
  withinMs?: number;
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
