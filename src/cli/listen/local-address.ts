import http from "node:http";
import https from "node:https";
import { isLoopbackHost } from "../../lib/cidr.ts";
import type { Clock } from "../../lib/clock.ts";
import { wordsFor } from "../client/failure.ts";

/** A request as a webhook would get it. */
export interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Of the event; null when it has none, absent when the server does not know of types. */
  readonly eventType?: string | null;
}

/** What the address made of it. */
export interface LocalAnswer {
  /** Null: no answer. */
  readonly status: number | null;
  /** Why there is no answer, in words; null when there is one. */
  readonly error: string | null;
  /** From the start to the complete head. */
  readonly durationMs: number;
}

/** As long as a webhook may take (specification, "Limits"). */
const limitMs = 10_000;

/**
 * One POST with exactly these headers and this body, as a delivery is made: no redirect is followed, and the status alone
 * counts. By `node:http`, because `fetch` would hand it to a proxy of the environment. On this machine any certificate
 * will do: development servers sign their own.
 */
export function postTo(url: URL, { headers, body }: Delivery, clock: Clock): Promise<LocalAnswer> {
  const content = Buffer.from(body, "utf8");
  const startedAtMs = clock.monotonicMs();
  return new Promise((resolve) => {
    const options = {
      method: "POST",
      // A new connection each: one that was kept may be dead by now, and then a server that is up would seem to be down.
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
      // Read to its end, within the limit: a server whose answer is cut off writes errors into its log.
      response.resume();
      response.on("error", () => {});
    });
    request.on("error", (error) => settle(null, wordsFor(error)));
    request.on("close", cancelLimit);
    request.end(content);
  });
}
