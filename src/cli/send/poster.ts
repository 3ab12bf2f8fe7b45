import { randomUUID } from "node:crypto";
import { StartupError } from "../../domain/errors.ts";
import { formatDuration } from "../../lib/duration.ts";
import { mayHaveTakenEffect, refusalOf, temporaryFailureIn, textIn } from "../client/answer.ts";
import { TemporaryFailure } from "../client/failure.ts";
import type { Patience } from "../client/patience.ts";
import type { Reply, ServerClient } from "../client/server.ts";
import { Interrupted } from "../interrupted.ts";

/** The outcome of one request, after all its retries. */
export type Outcome =
  | { readonly kind: "accepted"; readonly reply: Reply }
  /** Something in this request breaks a rule, and none of its events was accepted; another request may be. */
  | { readonly kind: "refused"; readonly message: string }
  /** No other request would fare better, or this one may have been accepted before a repeat of it was refused. */
  | { readonly kind: "stopped"; readonly message: string; readonly mayHaveArrived: boolean };

export type Post = (path: string, body: Uint8Array<ArrayBuffer>) => Promise<Outcome>;

export interface PosterDeps {
  server: ServerClient;
  apiKey: string;
  /** Bounded by `retryForMs`. */
  patience: Patience;
  retryForMs: number;
}

/** A batch of 5 MiB over a slow connection takes a while. */
const silenceMs = 120_000;
/** A rate limit that lasts longer than this is not waited for. */
const longestRateWaitMs = 60_000;

/** Makes ingestion requests. Each has an idempotency key, so that repeating it cannot ingest its events twice. */
export function createPoster({ server, apiKey, patience, retryForMs }: PosterDeps): Post {
  return async (path, body) => {
    const headers = { "Idempotency-Key": randomUUID() };
    let mayHaveArrived = false;

    async function attempt(): Promise<Reply> {
      try {
        const reply = await server.call("POST", path, { token: apiKey, headers, body, silenceMs });
        const failure = temporaryFailureIn(reply);
        if (failure && !isLongRateLimit(reply)) throw failure;
        return reply;
      } catch (error) {
        if (error instanceof TemporaryFailure) mayHaveArrived ||= error.details.mayHaveArrived;
        throw error;
      }
    }

    try {
      return judge(await patience(attempt), server, mayHaveArrived);
    } catch (error) {
      return { kind: "stopped", message: reasonOf(error, server, retryForMs), mayHaveArrived };
    }
  };
}

const isLongRateLimit = ({ status, retryAfterMs }: Reply) => status === 429 && (retryAfterMs ?? 0) > longestRateWaitMs;

/** @param mayHaveArrived whether an earlier attempt may have been accepted; the answer to a repeat does not tell */
function judge(reply: Reply, server: ServerClient, mayHaveArrived: boolean): Outcome {
  const { status } = reply;
  if (status === 202) return { kind: "accepted", reply };
  // Proxies have limits of their own, and their answers lack our `message`.
  const isProxys = status === 413 && textIn(reply.json, "message") === null;
  const message = isProxys
    ? "A proxy in front of the server does not accept requests of this size."
    : refusalOf(server, reply).message;
  // Sent again in parts, under other idempotency keys, events that have arrived would be accepted twice.
  if (!mayHaveArrived && (status === 400 || status === 413)) return { kind: "refused", message };
  const remedy = status === 401 ? " Try: POSTRIDER_API_KEY with an active key of the account." : "";
  return {
    kind: "stopped",
    message: `${message}${remedy}`,
    mayHaveArrived: mayHaveArrived || mayHaveTakenEffect(reply),
  };
}

function reasonOf(error: unknown, server: ServerClient, retryForMs: number): string {
  if (error instanceof Interrupted) return "Interrupted.";
  if (error instanceof StartupError) return error.message;
  if (!(error instanceof TemporaryFailure)) throw error;
  return `${server.url} ${error.reason}; gave up after ${formatDuration(retryForMs)}. Try: later, or a longer --retry-for.`;
}
