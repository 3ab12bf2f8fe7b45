import type { Clock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/error-message.ts";
import { version } from "../../version.ts";

/** What came back, before it is interpreted. */
export type HttpAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** The value of the body; undefined when it is not JSON. */
      readonly body: unknown;
      /** How long Paystack asks us to wait; set only with a 429. */
      readonly retryAfterMs: number | undefined;
    }
  /**
   * `reason` names neither the address nor anything that was sent. `underWay`: the request may still be in progress,
   * which is ruled out when the connection was never made.
   */
  | { readonly kind: "no_answer"; readonly reason: string; readonly underWay: boolean };

export interface PaystackHttp {
  get(path: string, timeoutMs: number): Promise<HttpAnswer>;
  post(path: string, body: Readonly<Record<string, unknown>>, timeoutMs: number): Promise<HttpAnswer>;
}

/** Answers are a few KiB; a longer one is not from Paystack. */
const maxAnswerBytes = 1024 * 1024;

/** Paystack counts requests in windows of 60 s; `x-ratelimit-reset` says how many seconds are left in the current one. */
const rateWindowMs = 60_000;
/** A pause longer than this cannot be the rest of a window, and would hold up a month's end. */
const maxRateLimitResetSeconds = 3_600;

/**
 * Starts the runtime's thread for `fetch`. The first request does so otherwise, and if connections have used up the descriptors by
 * then, the runtime ends the process (`lib/threads.ts`). This request goes nowhere.
 */
export async function startFetchThread(): Promise<void> {
  await fetch("http://localhost", { unix: "/nonexistent" }).catch(() => {});
}

/**
 * Speaks HTTP with Paystack, and is the only file of the adapter that opens connections. One call is one request: nothing is
 * sent twice, and no redirect is followed, since the key would go with it.
 */
export function createPaystackHttp({
  secretKey,
  baseUrl,
  clock,
}: {
  secretKey: string;
  baseUrl: string;
  clock: Clock;
}): PaystackHttp {
  const base = baseUrl.replace(/\/+$/, "");
  // Nobody can connect yet.
  void startFetchThread();

  async function exchange(path: string, timeoutMs: number, method: "GET" | "POST", body?: string): Promise<HttpAnswer> {
    const controller = new AbortController();
    const cancelTimer = clock.after(timeoutMs, () => controller.abort());
    try {
      const response = await fetch(base + path, {
        method,
        headers: {
          Authorization: `Bearer ${secretKey}`,
          Accept: "application/json",
          "User-Agent": `Postrider/${version}`,
          // The body limit counts the bytes read, and nothing has to be decompressed to be counted.
          "Accept-Encoding": "identity",
          ...(body !== undefined && { "Content-Type": "application/json" }),
        },
        ...(body !== undefined && { body }),
        redirect: "manual",
        // `fetch` may resend a request when a kept-alive connection turns out to be dead; on a new connection it never
        // does.
        keepalive: false,
        signal: controller.signal,
      });
      const bytes = await readAtMost(response, maxAnswerBytes);
      if (bytes === null)
        return { kind: "no_answer", reason: "Paystack's response is larger than 1 MiB", underWay: false };
      return {
        kind: "answered",
        status: response.status,
        body: parseJson(bytes),
        retryAfterMs: response.status === 429 ? readPause(response.headers) : undefined,
      };
    } catch (error) {
      const reason = explain(error, controller.signal.aborted, timeoutMs);
      return { kind: "no_answer", reason, underWay: !neverConnected.has(codeOf(error)) };
    } finally {
      cancelTimer();
    }
  }

  return {
    get: (path, timeoutMs) => exchange(path, timeoutMs, "GET"),
    post: (path, body, timeoutMs) => exchange(path, timeoutMs, "POST", JSON.stringify(body)),
  };
}

/** @returns null when there is more; leaving the loop closes the connection. */
async function readAtMost(response: Response, maxBytes: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

/**
 * An integer that a double cannot hold is kept as written: transaction ids have 64 bits.
 * @returns undefined for what is not JSON
 */
function parseJson(bytes: Uint8Array): unknown {
  const keepLongNumbers = (_key: string, value: unknown, written?: { source?: string }) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) ? (written?.source ?? value) : value;
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes), keepLongNumbers);
  } catch {
    return undefined;
  }
}

function readPause(headers: Headers): number {
  const reset = headers.get("x-ratelimit-reset") ?? "";
  const seconds = /^\d{1,5}$/.test(reset) ? Number(reset) : Number.NaN;
  return seconds <= maxRateLimitResetSeconds ? seconds * 1_000 : rateWindowMs;
}

/** Nothing was sent: there was nobody to send it to. */
const neverConnected: ReadonlySet<string> = new Set([
  "ConnectionRefused",
  "ECONNREFUSED",
  "ENOTFOUND",
  "FailedToOpenSocket",
]);

/** From the error's code alone: its message holds the whole URL. */
function explain(error: unknown, timedOut: boolean, timeoutMs: number): string {
  if (timedOut) return `No response from Paystack within ${timeoutMs / 1_000} s`;
  const code = codeOf(error);
  return `The connection to Paystack failed${code === "" ? "" : ` (${code})`}`;
}
