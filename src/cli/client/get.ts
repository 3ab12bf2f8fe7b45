import { refusalOf } from "./answer.ts";
import { type CallDeps, createCall } from "./call.ts";

/** Reads as the signed-in account. */
export function createGet(deps: CallDeps) {
  const call = createCall(deps);
  /** The value of an answer; null when there is no such thing. @throws StartupError when it is refused permanently */
  return async function get(path: string): Promise<unknown> {
    const reply = await call("GET", path);
    if (reply.status === 404) return null;
    if (reply.status !== 200) throw refusalOf(deps.server, reply);
    return reply.json;
  };
}
