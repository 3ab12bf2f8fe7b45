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
  /** Of the program's own `POST /pay/callback`, as it is reached on this machine. */
  url(): string;
  clock: Pick<Clock, "after">;
  log: Log;
}

const timeoutMs = 10_000;

/** A month's end pays a thousand charges a second; each of these is a connection to ourselves. */
const attemptsAtOnce = 16;

/** Before the second try and the third. What is lost after that, a look-up finds: a callback is only a hint. */
const pausesMs = [1_000, 10_000] as const;

type Outcome = "taken" | "stopped" | { readonly failure: string };

/**
 * Tells the program over real HTTP what its sandbox has to say, so that the way from a processor's callback to a settled
 * charge is the same for both processors.
 *
 * By `node:http`, because `fetch` would hand it to a proxy of the environment; and any certificate will do, because the
 * connection never leaves the machine, a certificate names the public host, and the body is signed.
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
      // Like Paystack, which repeats a callback after every other answer.
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

  /** What `begin` comes to, or `otherwise` when everything stops before; it is cleared up by what `begin` returns. */
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
