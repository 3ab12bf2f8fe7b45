import { temporaryFailureIn } from "./answer.ts";
import type { Patience } from "./patience.ts";
import type { Reply, ServerClient } from "./server.ts";
import { type Session, withSession } from "./session.ts";

export interface CallDeps {
  server: ServerClient;
  session: Session;
  patience: Patience;
}

export type Method = "GET" | "POST" | "DELETE";

/**
 * One request as the account that is signed in, repeated for as long as the patience lasts.
 * @throws TemporaryFailure when that is over
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
