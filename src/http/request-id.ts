import { newToken } from "../lib/id.ts";

/** Names the requests of this process: `<process>-<n>`, short to type and never the same twice. */
export function createRequestIds(): () => string {
  const process = newToken(40);
  let n = 0;
  return () => {
    n += 1;
    return `${process}-${n}`;
  };
}

/**
 * What the client, or a proxy, calls the request: for the log only, to find it by. It may be anything, so it is taken when
 * it looks like an id and passed over when it does not.
 */
export function clientRequestId(headers: Headers): string | null {
  const given = headers.get("x-request-id") ?? headers.get("request-id");
  return given !== null && /^[\w.:/+=-]{1,128}$/.test(given) ? given : null;
}
