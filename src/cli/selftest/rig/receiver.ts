import type { Socket } from "bun";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { connect } from "./connection.ts";
import { createMessageReader, type Message, writeMessage } from "./http-message.ts";

/** The webhooks' side of a self-test: a loopback listener that hands over every delivery byte for byte. */
export interface Receiver {
  readonly url: string;
  /**
   * Resolves when everything that a server has sent is read and all its connections are closed. Call it once that server has
   * ended: what is handed over from then on comes from the next one.
   */
  whenDrained(): Promise<void>;
  stop(): void;
}

export interface Arrival {
  /** `/hook/3` */
  readonly path: string;
  readonly headers: Message["headers"];
  readonly body: Buffer;
}

export interface Answer {
  readonly status: number;
  /** When to answer: after this long, by the clock, or when the promise resolves. */
  readonly after: number | Promise<void>;
  /** Called when the answer has been given, or can no longer be. */
  onEnd?(): void;
}

interface Peer {
  /** Answers still to be given. */
  readonly owed: Set<Answer>;
  read(chunk: Uint8Array): void;
}

const nothing = Buffer.alloc(0);
const drainPath = "/drained";
const answerTo = (status: number) => writeMessage(`HTTP/1.1 ${status} Self-test`, {}, nothing);

export function startReceiver(clock: Clock, receive: (arrival: Arrival) => Answer): Receiver {
  const open = new Set<Socket<Peer>>();
  const waiting = new Set<() => void>();
  /** Sockets that exist only to find out whether the others are gone. */
  const asking = new Set<Socket<Peer>>();

  function take(socket: Socket<Peer>, { startLine, headers, body }: Message): void {
    const path = startLine.split(" ", 2)[1] ?? "";
    if (path === drainPath) {
      asking.add(socket);
      socket.write(answerTo(204));
      return;
    }
    const answer = receive({ path, headers, body });
    const { after } = answer;
    socket.data.owed.add(answer);
    if (after === 0) {
      give(socket, answer);
      return;
    }
    const due = typeof after === "number" ? sleep(clock, after) : after;
    void due.then(() => give(socket, answer));
  }

  function give(socket: Socket<Peer>, answer: Answer): void {
    if (!socket.data.owed.delete(answer)) return;
    socket.write(answerTo(answer.status));
    answer.onEnd?.();
  }

  function leave(socket: Socket<Peer>): void {
    open.delete(socket);
    asking.delete(socket);
    for (const { onEnd } of socket.data.owed) onEnd?.();
    socket.data.owed.clear();
    for (const look of [...waiting]) look();
  }

  const listener = Bun.listen<Peer>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { owed: new Set(), read: createMessageReader((message) => take(socket, message)) };
        open.add(socket);
      },
      data: (socket, chunk) => socket.data.read(chunk),
      close: leave,
      error: leave,
    },
  });

  /** Connections are accepted in the order they were made, so none of an ended server's comes after this one. */
  async function whenDrained(): Promise<void> {
    const last = await connect(listener.port);
    await last?.send(writeMessage(`GET ${drainPath} HTTP/1.1`, { Host: "127.0.0.1" }, nothing));
    await new Promise<void>((resolve) => {
      const look = () => {
        if (open.size > asking.size) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
    last?.close();
  }

  return {
    url: `http://127.0.0.1:${listener.port}`,
    whenDrained,
    stop: () => listener.stop(true),
  };
}
