import { refusalOf, temporaryFailureIn } from "./answer.ts";
import type { Patience } from "./patience.ts";
import type { ServerClient } from "./server.ts";
import { type Session, withSession } from "./session.ts";

export interface GetDeps {
  server: ServerClient;
  session: Session;
  patience: Patience;
}

/** Reads as the account that is signed in. */
export function createGet({ server, session, patience }: GetDeps) {
  /** The value of an answer; null when there is no such thing. @throws StartupError when it is refused for good */
  return async function get(path: string): Promise<unknown> {
    const reply = await patience(async () => {
      const answer = await withSession(session, (token) => server.call("GET", path, { token }));
      const failure = temporaryFailureIn(answer);
      if (failure) throw failure;
      return answer;
    });
    if (reply.status === 404) return null;
    if (reply.status !== 200) throw refusalOf(server, reply);
    return reply.json;
  };
}
