import type { Config } from "./config.ts";
import { StartupError, shuttingDown } from "./domain/errors.ts";
import { errorResponse } from "./http/errors.ts";
import { canSharePorts, steerConnections } from "./http/shared-port.ts";
import { tlsSuites } from "./http/transport-security.ts";

/**
 * Takes connections for a server that is not built yet, and holds their requests until it is (`handover.ts`). Only the
 * head of a held request has been read.
 */
export interface Reception {
  /** From now on the server answers, including what is held. Each answer is the last one on its connection. */
  open(answer: (request: Request) => Response | Promise<Response>): void;
  /** The client's address for a request that came here. */
  addressOf(request: Request): string | undefined;
  /** Leaves the port at once; resolves when it has answered everything it has. */
  close(): Promise<void>;
}

export interface HoldingReception extends Reception {
  /** Steers the port's new connections here. @returns false when the system does not allow it */
  steer(): boolean;
}

/**
 * Nothing has to be held for a server while the former one keeps running alongside it: once this one listens, it steers
 * the port's new connections to itself.
 */
export const createNoReception = (port: number, onSteered: () => void): Reception => ({
  open() {
    steerConnections(port, 1);
    onSteered();
  },
  addressOf: () => undefined,
  close: async () => {},
});

/** Requests held at a time: some seconds of a busy server, and any more may ask again. */
const mostHeld = 2_000;

export interface ReceptionOptions extends Pick<Config, "host" | "port" | "tls"> {
  /** Seconds until a quiet connection is cut. */
  idleTimeout: number;
  maxRequestBodySize: number;
}

/** @throws StartupError when the port cannot be shared with us */
export function openReception({
  host,
  port,
  tls,
  idleTimeout,
  maxRequestBodySize,
}: ReceptionOptions): HoldingReception {
  if (!canSharePorts() || port === 0) {
    throw new StartupError("The port cannot be shared: that needs a fixed port, and Linux. Try: set POSTRIDER_PORT.");
  }
  const { promise: opened, resolve: open } =
    Promise.withResolvers<(request: Request) => Response | Promise<Response>>();
  const addresses = new WeakMap<Request, string>();
  let held = 0;

  const server = Bun.serve({
    hostname: host,
    port,
    reusePort: true,
    development: false,
    idleTimeout,
    maxRequestBodySize,
    ...(tls && { tls: { cert: tls.cert, key: tls.key, ciphers: tlsSuites } }),
    fetch: hold,
  });

  async function hold(request: Request, self: Bun.Server<undefined>): Promise<Response> {
    if (held >= mostHeld) return errorResponse(shuttingDown(1));
    const address = self.requestIP(request)?.address;
    if (address !== undefined) addresses.set(request, address);
    held += 1;
    try {
      const response = await (await opened)(request);
      response.headers.set("Connection", "close");
      return response;
    } finally {
      held -= 1;
    }
  }

  return {
    // The predecessor's listener is the first one: a predecessor with more than one refuses to be succeeded.
    steer: () => steerConnections(port, 1),
    open,
    addressOf: (request) => addresses.get(request),
    close: () => server.stop(false),
  };
}
