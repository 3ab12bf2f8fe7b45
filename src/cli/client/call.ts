import { StartupError } from "../../domain/errors.ts";
import { temporaryFailureIn } from "./answer.ts";
import { TemporaryFailure } from "./failure.ts";
import type { Patience } from "./patience.ts";
import type { Reply, ServerClient } from "./server.ts";
import { type Session, withSession } from "./session.ts";

export interface CallDeps {
  server: ServerClient;
  session: Session;
  patience: Patience;
}

type Method = "GET" | "POST" | "PUT" | "DELETE";

/**
 * Makes one request as the signed-in account, repeated for as long as the patience lasts.
 * @throws TemporaryFailure when the patience runs out
 */
export type Call = (method: Method, path: string, body?: unknown) => Promise<Reply>;

export function createCall({ server, session, patience }: CallDeps): Call {
  return (method, path, body) =>
    patience(async () => {
      const content = body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) };
      const reply = await withSession(session, (token) => server.call(method, path, { token, ...content }));
      const failure = temporaryFailureIn(reply);
      if (failure) throw failure;
      return reply;
    });
}

/**
 * Like `Call`, for requests that must not take effect twice: one that may have arrived is not repeated, nor is one that was
 * rate limited.
 * @param doubt what to say in that case, and what to try
 * @throws StartupError with the doubt; TemporaryFailure
 */
export type CallOnce = (
  method: Method,
  path: string,
  body: unknown,
  doubt: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Reply>;

export function createCallOnce({ server, session, patience }: CallDeps): CallOnce {
  return (method, path, body, doubt, headers = {}) =>
    patience(async () => {
      const content = Buffer.from(JSON.stringify(body));
      try {
        const reply = await withSession(session, (token) =>
          server.call(method, path, { token, body: content, headers }),
        );
        const failure = reply.status === 429 ? null : temporaryFailureIn(reply);
        if (failure) throw failure;
        return reply;
      } catch (error) {
        if (!(error instanceof TemporaryFailure) || !error.details.mayHaveArrived) throw error;
        throw new StartupError(`${server.url} ${error.reason}. ${doubt}`);
      }
    });
}
