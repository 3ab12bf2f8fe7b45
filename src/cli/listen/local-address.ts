import http from "node:http";
import https from "node:https";
import { isLoopbackHost } from "../../lib/cidr.ts";
import type { Clock } from "../../lib/clock.ts";
import { wordsFor } from "../client/failure.ts";

/** A request as a webhook would get it. */
export interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The event's type; null when it has none, absent when the server does not know about types. */
  readonly eventType?: string | null;
}

/** How the local address answered. */
export interface LocalAnswer {
  /** Null: no answer. */
  readonly status: number | null;
  /** Why there is no answer, in words; null when there is one. */
  readonly error: string | null;
  /** From the start until the response head is complete. */
  readonly durationMs: number;
}

/** The same limit as for a webhook (specification, "Limits"). */
const limitMs = 10_000;

/**
 * One POST with exactly these headers and this body, made like a delivery: redirects are not followed, and only the status
 * counts. Uses `node:http`, because `fetch` would send it through the environment's proxy. On this machine any certificate is
 * accepted: development servers use self-signed ones.
 */
export function postTo(url: URL, { headers, body }: Delivery, clock: Clock): Promise<LocalAnswer> {
  const content = Buffer.from(body, "utf8");
  const startedAtMs = clock.monotonicMs();
  return new Promise((resolve) => {
    const options = {
      method: "POST",
      // A new connection each time: a kept one may be dead by now, which would make a running server look down.
      agent: false,
      headers: { ...headers, "Content-Length": String(content.length) },
    } as const;
    const request =
      url.protocol === "https:"
        ? https.request(url, { ...options, rejectUnauthorized: !isLoopbackHost(url.hostname) })
        : http.request(url, options);
    const settle = (status: number | null, error: string | null) =>
      resolve({ status, error, durationMs: Math.round(clock.monotonicMs() - startedAtMs) });
    const cancelLimit = clock.after(limitMs, () => {
      settle(null, `no response within ${limitMs / 1000} s`);
      request.destroy();
    });
    request.on("response", (response) => {
      settle(response.statusCode ?? 0, null);
      // The body is read to its end, within the limit: a server whose response is cut off logs errors.
      response.resume();
      response.on("error", () => {});
    });
    // To a webhook's delivery, too, 101 is a status like any other.
    request.on("upgrade", (response, socket) => {
      settle(response.statusCode ?? 0, null);
      socket.destroy();
    });
    request.on("error", (error) => settle(null, wordsFor(error)));
    request.on("close", () => {
      cancelLimit();
      settle(null, "connection closed");
    });
    request.end(content);
  });
}
