import http from "node:http";
import https from "node:https";
import type { Clock } from "../../lib/clock.ts";
import { createSemaphore } from "../../lib/limiter.ts";
import type { Log } from "../../lib/log.ts";
import { signatureHeader } from "./callbacks.ts";

export interface CallbackSender {
  /** Sends a callback until it is accepted or the attempts are used up. Never rejects. */
  post(body: Uint8Array, signature: string): Promise<void>;
  /** Resolves when nothing is under way. */
  whenIdle(): Promise<void>;
  /** Aborts what is in flight and accepts nothing more. */
  stop(): Promise<void>;
}

export interface CallbackSenderDeps {
  /** The URL of the program's own `POST /pay/callback`, as reached on this machine. */
  url(): string;
  clock: Pick<Clock, "after">;
  log: Log;
}

const timeoutMs = 10_000;

/** A month's end pays a thousand charges a second, and each attempt is a connection to ourselves. */
const attemptsAtOnce = 16;

/** Pauses before the second and third tries. A look-up finds what is lost after that: a callback is only a hint. */
const pausesMs = [1_000, 10_000] as const;

type Outcome = "taken" | "stopped" | { readonly failure: string };

/**
 * Delivers the sandbox's callbacks to the program over real HTTP, so that the path from a processor's callback to a
 * settled charge is the same for both processors.
 *
 * Uses `node:http`, because `fetch` would go through a proxy set in the environment. Any certificate is accepted, because
 * the connection never leaves the machine, the certificate names the public host, and the body is signed.
 */
export function createCallbackSender({ url, clock, log }: CallbackSenderDeps): CallbackSender {
  const stopping = new AbortController();
  const underWay = new Set<Promise<void>>();
  const turns = createSemaphore(attemptsAtOnce);

  async function send(body: Uint8Array, signature: string): Promise<void> {
    let failure = "";
    for (const pauseMs of [0, ...pausesMs]) {
      if (pauseMs > 0) await unlessStopped<void>(undefined, (done) => clock.after(pauseMs, done));
      const outcome = await turns.run(() => attempt(body, signature));
      if (outcome === "taken" || outcome === "stopped") return;
      failure = outcome.failure;
    }
    log.write("warn", "sandbox.callback_lost", { tries: pausesMs.length + 1, reason: failure });
  }

  function attempt(body: Uint8Array, signature: string): Promise<Outcome> {
    return unlessStopped<Outcome>("stopped", (done) => {
      const target = url();
      const options: https.RequestOptions = {
        method: "POST",
        agent: false,
        rejectUnauthorized: false,
        headers: {
          "Content-Type": "application/json",
          "Content-Length": String(body.length),
          [signatureHeader]: signature,
        },
      };
      const request = target.startsWith("https:") ? https.request(target, options) : http.request(target, options);
      // Like Paystack, which repeats a callback after any other status.
      request.on("response", ({ statusCode }) =>
        done(statusCode === 200 ? "taken" : { failure: `HTTP ${statusCode}` }),
      );
      request.on("error", (error) => done({ failure: "code" in error ? String(error.code) : error.name }));
      request.end(body);
      const cancelTimer = clock.after(timeoutMs, () => done({ failure: `no response within ${timeoutMs / 1_000} s` }));
      return () => {
        cancelTimer();
        request.destroy();
      };
    });
  }

  /**
   * The result of `begin`, or `otherwise` if the sender stops first. The function that `begin` returns cleans up either
   * way.
   */
  async function unlessStopped<T>(otherwise: T, begin: (done: (result: T) => void) => () => void): Promise<T> {
    const { signal } = stopping;
    if (signal.aborted) return otherwise;
    const { promise, resolve } = Promise.withResolvers<T>();
    const stop = () => resolve(otherwise);
    signal.addEventListener("abort", stop);
    const clearUp = begin(resolve);
    const result = await promise;
    clearUp();
    signal.removeEventListener("abort", stop);
    return result;
  }

  return {
    post(body, signature) {
      const sending = send(body, signature).finally(() => underWay.delete(sending));
      underWay.add(sending);
      return sending;
    },
    async whenIdle() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
    async stop() {
      stopping.abort();
      await Promise.all(underWay);
    },
  };
}
