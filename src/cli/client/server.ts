import { isDistrust } from "../../delivery/network/no-response.ts";
import { StartupError } from "../../domain/errors.ts";
import { isLoopbackHost } from "../../lib/cidr.ts";
import type { Clock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/error-message.ts";
import { version } from "../../version.ts";
import { isBeforeSending, TemporaryFailure, wordsFor } from "./failure.ts";
import { proxyVariableFor } from "./proxy-variable.ts";

export interface Reply {
  readonly status: number;
  /** The body's text, unchanged. */
  readonly text: string;
  /** The body's value; null when it has none or is not JSON. */
  readonly json: unknown;
  /** From `Retry-After`; null when there is none. */
  readonly retryAfterMs: number | null;
  /** From `Location`; null when there is none. */
  readonly location: string | null;
  /** From `ETag`; null when there is none. */
  readonly etag: string | null;
  /** The server's clock, in ms since the Unix epoch; null when it does not say. */
  readonly serverTime: number | null;
}

/** An answer whose body is streamed. */
export interface OpenStream {
  /** The body as it arrives. @throws as `call` */
  readonly chunks: AsyncIterable<Uint8Array>;
}

export interface CallOptions {
  token?: string;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array<ArrayBuffer>;
  /** How long nothing may come of the answer. @default as for `open` */
  silenceMs?: number;
}

/** A server anywhere, reached as any client would: by `fetch`, and so through the environment's proxy. */
export interface ServerClient {
  /** Its base address, for messages. */
  readonly url: string;
  /**
   * One request and its whole answer, which may take any time as long as more of it comes.
   * @throws TemporaryFailure when there is no answer; StartupError when the server's certificate is not trusted, or it answers by
   * https only; the reason of the client's signal
   */
  call(method: string, path: string, options?: CallOptions): Promise<Reply>;
  /**
   * One GET whose answer is streamed if it is a 200. It must begin within 30 s.
   * @param signal ends it; the body then throws its reason
   * @throws as `call`
   */
  open(
    path: string,
    options: Pick<CallOptions, "token" | "headers"> & { signal: AbortSignal },
  ): Promise<OpenStream | Reply>;
}

export interface ServerClientOptions {
  url: string;
  clock: Clock;
  /** Ends all requests under way. */
  signal: AbortSignal;
}

const answerWithinMs = 30_000;
const tlsPatienceMs = 3_000;

export function createServerClient({ url, clock, signal }: ServerClientOptions): ServerClient {
  // A proxy on another machine would look for this server on its own.
  const direct = isLoopbackHost(new URL(url).hostname);
  const secure = url.replace(/^http:/, "https:");

  const request = (path: string, { token, headers }: CallOptions, init: RequestInit & { signal: AbortSignal }) =>
    fetch(`${url}${path}`, {
      ...init,
      headers: {
        "User-Agent": `postrider/${version}`,
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...headers,
      },
      // A password must not be sent on to wherever a redirect points.
      redirect: "manual",
      // Explicit, so that no environment variable can turn it off.
      tls: { rejectUnauthorized: true },
      ...(direct && { proxy: false }),
    });

  async function readReply(response: Response, silence: Silence): Promise<Reply> {
    const text = await readText(response, silence);
    const { status, headers } = response;
    return {
      status,
      text,
      json: parse(text),
      retryAfterMs: readRetryAfter(headers.get("retry-after"), clock.now()),
      location: headers.get("location"),
      // A proxy that compresses makes it a weak one, which would never match again.
      etag: headers.get("etag")?.replace(/^W\//, "") ?? null,
      serverTime: timeOrNull(headers.get("date")),
    };
  }

  /** A signal for this request that the client's own also aborts. `AbortSignal.any` would never detach from the client's. */
  function createLimit(): { controller: AbortController; release(): void } {
    const controller = new AbortController();
    const onAbort = () => controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    return { controller, release: () => signal.removeEventListener("abort", onAbort) };
  }

  /** Ends a request of whose answer nothing comes for this long. */
  function limitSilence(controller: AbortController, silenceMs: number): Silence {
    const end = (reason: string) => () =>
      controller.abort(new TemporaryFailure(reason, { retryAfterMs: null, mayHaveArrived: true }));
    let cancel = clock.after(silenceMs, end(`did not answer within ${silenceMs / 1000} s`));
    return {
      broken() {
        cancel();
        cancel = clock.after(silenceMs, end(`did not go on with its answer for ${silenceMs / 1000} s`));
      },
      over: () => cancel(),
    };
  }

  function translate(error: unknown): unknown {
    if (signal.aborted) return signal.reason;
    if (error instanceof TemporaryFailure) return error;
    // Not sent at all, since no request can be made of it; no repeat changes that.
    if (error instanceof TypeError && codeOf(error) === "") return error;
    if (isDistrust(error)) {
      return new StartupError(
        `${url} cannot be trusted: its ${wordsFor(error)}. ` +
          "Try: NODE_EXTRA_CA_CERTS=/path/to/ca.pem, with the certificate authority that issued it.",
      );
    }
    // One that refuses a tunnel says that it is a proxy.
    const proxy = direct || codeOf(error) === "ERR_PROXY_TUNNEL" ? null : proxyVariableFor(url, process.env);
    return new TemporaryFailure(`cannot be reached ${proxy === null ? "" : `through ${proxy} `}(${wordsFor(error)})`, {
      retryAfterMs: null,
      mayHaveArrived: !isBeforeSending(error),
      proxy,
    });
  }

  /**
   * Whether the same port answers by https: a listener with TLS hangs up on a client without, at every try. Nothing secret is
   * sent to find out.
   */
  async function answersByTls(): Promise<boolean> {
    if (secure === url || new URL(url).port === "") return false;
    const { controller, release } = createLimit();
    const cancel = clock.after(tlsPatienceMs, () => controller.abort());
    try {
      const { signal } = controller;
      await fetch(secure, {
        signal,
        redirect: "manual",
        tls: { rejectUnauthorized: true },
        ...(direct && { proxy: false }),
      });
      return true;
    } catch (error) {
      return isDistrust(error);
    } finally {
      cancel();
      release();
    }
  }

  async function reasonOf(error: unknown): Promise<unknown> {
    if (codeOf(error) !== "ECONNRESET" || !(await answersByTls())) return translate(error);
    return new StartupError(`${url} closes the connection, and answers by https. Try: --server ${secure}`);
  }

  async function* chunksOf(response: Response, release: () => void): AsyncGenerator<Uint8Array> {
    try {
      if (response.body) yield* response.body;
    } catch (error) {
      throw translate(error);
    } finally {
      release();
    }
  }

  return {
    url,

    async call(method, path, options = {}) {
      const { body, silenceMs = answerWithinMs } = options;
      const { controller, release } = createLimit();
      const silence = limitSilence(controller, silenceMs);
      try {
        const headers = { ...(body && { "Content-Type": "application/json" }), ...options.headers };
        const init = { method, ...(body && { body }), signal: controller.signal };
        return await readReply(await request(path, { ...options, headers }, init), silence);
      } catch (error) {
        throw await reasonOf(error);
      } finally {
        silence.over();
        release();
      }
    },

    async open(path, options) {
      const { controller, release } = createLimit();
      const { signal: own } = options;
      own.addEventListener("abort", () => controller.abort(own.reason));
      const silence = limitSilence(controller, answerWithinMs);
      try {
        const response = await request(path, options, { signal: controller.signal });
        if (response.status === 200) return { chunks: chunksOf(response, release) };
        const reply = await readReply(response, silence);
        release();
        return reply;
      } catch (error) {
        release();
        throw await reasonOf(error);
      } finally {
        silence.over();
      }
    },
  };
}

/** Nothing comes of an answer for now. */
interface Silence {
  /** More of it has come; what follows may take as long again. */
  broken(): void;
  /** All of it has come, or the request has failed. */
  over(): void;
}

/** Over a slow connection, a long list takes a while. */
async function readText({ body }: Response, silence: Silence): Promise<string> {
  silence.broken();
  if (body === null) return "";
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  for await (const chunk of body) {
    silence.broken();
    pieces.push(decoder.decode(chunk, { stream: true }));
  }
  pieces.push(decoder.decode());
  return pieces.join("");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** RFC 9110, section 10.2.3: seconds or a date. */
function readRetryAfter(value: string | null, now: number): number | null {
  if (value === null) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = timeOrNull(value);
  return at === null ? null : Math.max(0, at - now);
}

function timeOrNull(value: string | null): number | null {
  const ms = Date.parse(value ?? "");
  return Number.isNaN(ms) ? null : ms;
}
