import { createMessageReader, type Message } from "./http-message.ts";

/** One connection to the server under test, with one request at a time. Nothing is ever resent automatically. */
export interface Connection {
  /** Resolves with the answer, or with null when the server went away before the answer was whole. */
  send(request: Uint8Array): Promise<Message | null>;
  /** Resolves when the connection is closed, by either side. */
  readonly closed: Promise<void>;
  close(): void;
}

/** Null when nobody listens. */
export async function connect(port: number): Promise<Connection | null> {
  let answer: ((message: Message | null) => void) | null = null;
  let unsent: Uint8Array = Buffer.alloc(0);
  let isClosed = false;
  const { promise: closed, resolve: noteClosed } = Promise.withResolvers<void>();

  const settle = (message: Message | null) => {
    const waiting = answer;
    answer = null;
    waiting?.(message);
  };
  const end = () => {
    isClosed = true;
    settle(null);
    noteClosed();
  };
  const read = createMessageReader(settle);

  let socket: Awaited<ReturnType<typeof Bun.connect>>;
  try {
    socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data: (_socket, chunk) => read(chunk),
        drain: flush,
        close: end,
        error: end,
      },
    });
  } catch {
    return null;
  }

  function flush(): void {
    const sent = socket.write(unsent);
    unsent = unsent.subarray(Math.max(sent, 0));
  }

  return {
    closed,
    send(request) {
      if (isClosed) return Promise.resolve(null);
      return new Promise((resolve) => {
        answer = resolve;
        unsent = request;
        flush();
      });
    },
    close() {
      socket.terminate();
      end();
    },
  };
}
