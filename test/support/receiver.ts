/** The other end of a webhook, as a well-behaved HTTP server: it keeps every request and answers as the test says. */
export interface Receiver {
  /** `http://127.0.0.1:<port>`; accepts every path. */
  readonly url: string;
  /** All complete requests, oldest first. */
  readonly requests: readonly ReceivedRequest[];
  /**
   * Resolves with all requests once `n` of them have arrived, or with the first that fits, including earlier ones. It
   * waits for a signal and has no time limit of its own: the test's is enough.
   */
  waitFor(n: number): Promise<readonly ReceivedRequest[]>;
  waitFor(fits: (request: ReceivedRequest) => boolean): Promise<ReceivedRequest>;
  stop(): Promise<void>;
}

export interface ReceivedRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Headers;
  /** The raw bytes, for signatures. */
  readonly body: Buffer;
  /** The body's value; throws when it is not JSON. */
  json(): unknown;
  /** Counts all requests, from 1. */
  readonly nth: number;
}

export interface ReceiverOptions {
  /** @default 204 for everything */
  answer?: (request: ReceivedRequest) => Response | Promise<Response>;
  /** Serves https with this certificate. */
  tls?: { cert: string; key: string };
  /** @default any free one */
  port?: number;
}

export function startReceiver({ answer, tls, port = 0 }: ReceiverOptions = {}): Receiver {
  const requests: ReceivedRequest[] = [];
  const waiting = new Set<() => void>();

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    idleTimeout: 0,
    ...(tls && { tls }),
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const body = Buffer.from(await request.arrayBuffer());
      const received: ReceivedRequest = {
        method: request.method,
        path: pathname + search,
        headers: request.headers,
        body,
        json: () => JSON.parse(body.toString("utf8")),
        nth: requests.length + 1,
      };
      requests.push(received);
      for (const look of [...waiting]) look();
      return answer ? answer(received) : new Response(null, { status: 204 });
    },
  });

  /** Checks now and after every request, until there is something to see. */
  function whenSeen<T>(see: () => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const look = () => {
        const seen = see();
        if (seen === undefined) return;
        waiting.delete(look);
        resolve(seen);
      };
      waiting.add(look);
      look();
    });
  }

  function waitFor(n: number): Promise<readonly ReceivedRequest[]>;
  function waitFor(fits: (request: ReceivedRequest) => boolean): Promise<ReceivedRequest>;
  function waitFor(
    what: number | ((request: ReceivedRequest) => boolean),
  ): Promise<readonly ReceivedRequest[] | ReceivedRequest> {
    if (typeof what === "function") return whenSeen(() => requests.find(what));
    return whenSeen(() => (requests.length >= what ? requests : undefined));
  }

  return {
    url: `${tls ? "https" : "http"}://127.0.0.1:${server.port}`,
    requests,
    waitFor,
    stop: () => server.stop(true),
  };
}
