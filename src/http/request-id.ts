import { newToken } from "../lib/id.ts";

/** Names the requests of this process: `<process>-<n>`, short to type and never repeated. */
export function createRequestIds(): () => string {
  const process = newToken(40);
  let n = 0;
  return () => {
    n += 1;
    return `${process}-${n}`;
  };
}

/**
 * What the client, or a proxy, calls the request; only for finding it in the log. It may be anything, so it is used only if
 * it looks like an id.
 */
export function clientRequestId(headers: Headers): string | null {
  const given = headers.get("x-request-id") ?? headers.get("request-id");
  return given !== null && /^[\w.:/+=-]{1,128}$/.test(given) ? given : null;
}
