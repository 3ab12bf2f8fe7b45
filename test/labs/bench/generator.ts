import type { Socket } from "bun";
import { createIngestRequest, type IngestRequest, nowUs } from "./event.ts";
import type { Ledger } from "./ledger.ts";
import { contentLengthIn } from "./receiver.ts";

/** Most events sent and not yet received: with more, the rate would be that of accepting, not of delivering. */
export const windowEvents = 2_000;
/** The timer's own step; an event that falls due in between is at most this late, and its latency counts it. */
const tickMs = 1;

/**
 * When the next event is due, in microseconds, or undefined while none is. Asking takes the event.
 * Closed loop: now, always. Open loop: by the schedule, whether or not the server keeps up, and latency counts from there:
 * a slow answer that delays the following requests makes their latencies long, instead of hiding them.
 */
export type Pace = (nowUs: number) => number | undefined;

export const asFastAsPossible: Pace = (now) => now;

export function atRate(eventsPerSecond: number, startUs: number): Pace {
  const intervalUs = 1e6 / eventsPerSecond;
  let sent = 0;
  return (now) => {
    const dueUs = Math.round(startUs + sent * intervalUs);
    if (dueUs > now) return undefined;
    sent++;
    return dueUs;
  };
}

/**
 * Kept connections, one for each tenant, each with one request at a time. Raw TCP with requests built beforehand: the
 * generator must cost less than what it measures.
 */
export interface Generator {
  /** Sends until `stop`, all into this ledger. */
  start(ledger: Ledger, pace: Pace): void;
  /** Sends what the pace and the window allow; to be called when a delivery has come. */
  pump(): void;
  stop(): void;
  /** Rejects when a connection breaks. */
  readonly broken: Promise<never>;
  close(): void;
}

interface Line {
  socket: Socket<Line> | undefined;
  request: IngestRequest;
  seq: number;
  dueUs: number;
  /** What the socket has not taken yet. */
  unsent: Buffer | undefined;
  pending: Buffer | undefined;
}

const headEnd = Buffer.from("\r\n\r\n");
const statusAt = "HTTP/1.1 ".length;

export interface GeneratorOptions {
  /** Whose events a connection sends, for the receiver's path. @default one tenant for each connection */
  tenantOf?(connection: number): number;
  /** Which server a connection sends to. @default that of `port` */
  portOf?(connection: number): number;
  /** Most events sent and not yet received. @default windowEvents */
  window?: number;
  /** Bytes of a payload. @default payloadBytes */
  size?: number;
  /** Events of each request, in batches. @default single events */
  batch?: number;
}

export async function connectGenerator(
  port: number,
  apiKeys: readonly string[],
  {
    tenantOf = (connection) => connection,
    portOf = () => port,
    window = windowEvents,
    size,
    batch = 0,
  }: GeneratorOptions = {},
): Promise<Generator> {
  /** Oldest first, so that all tenants send in turn also when few connections would do. */
  const idle: Line[] = [];
  const eventsOfEach = Math.max(batch, 1);
  const { promise: broken, reject } = Promise.withResolvers<never>();
  broken.catch(() => {});
  let ledger: Ledger | undefined;
  let pace: Pace | undefined;
  let closed = false;
  let ticker: ReturnType<typeof setInterval> | undefined;

  function pump() {
    if (pace === undefined || ledger === undefined) return;
    while (idle.length > 0 && ledger.inWindow() < window) {
      const dueUs = pace(nowUs());
      if (dueUs === undefined) return;
      send(idle.shift() as Line, ledger, dueUs);
    }
  }

  function send(line: Line, to: Ledger, dueUs: number) {
    line.dueUs = dueUs;
    line.seq = to.sent;
    to.sent += eventsOfEach;
    line.request.stamp(to.run, line.seq, dueUs);
    write(line, line.request.bytes);
  }

  function write(line: Line, bytes: Buffer) {
    const written = line.socket?.write(bytes) ?? 0;
    line.unsent = written < bytes.length ? bytes.subarray(Math.max(written, 0)) : undefined;
  }

  function onData(socket: Socket<Line>, chunk: Buffer) {
    const line = socket.data;
    const bytes = line.pending === undefined ? chunk : Buffer.concat([line.pending, chunk]);
    const bodyAt = bytes.indexOf(headEnd) + headEnd.length;
    const end = bodyAt < headEnd.length ? Number.NaN : bodyAt + contentLengthIn(bytes, 0, bodyAt);
    if (!(end <= bytes.length)) {
      line.pending = Buffer.from(bytes);
      return;
    }
    line.pending = undefined;
    noteAnswer(line, bytes);
    idle.push(line);
    pump();
  }

  function noteAnswer(line: Line, bytes: Buffer) {
    const isAccepted = bytes[statusAt] === 50 && bytes[statusAt + 1] === 48 && bytes[statusAt + 2] === 50;
    const atUs = nowUs();
    for (let i = 0; i < eventsOfEach; i++) {
      if (isAccepted) ledger?.noteAccepted(line.seq + i, atUs - line.dueUs, atUs);
      else
        ledger?.noteRefused(Number(bytes.toString("latin1", statusAt, statusAt + 3)), bytes.toString("utf8", 0, 600));
    }
  }

  const handlers = {
    data: onData,
    drain(socket: Socket<Line>) {
      if (socket.data.unsent !== undefined) write(socket.data, socket.data.unsent);
    },
    error: (_socket: Socket<Line>, error: Error) => reject(error),
    close() {
      if (!closed) reject(new Error("The server closed a connection of the load generator."));
    },
  };

  const lines = await Promise.all(
    apiKeys.map(async (apiKey, connection) => {
      const to = portOf(connection);
      const request = createIngestRequest(tenantOf(connection), to, apiKey, size, batch);
      const line: Line = { socket: undefined, request, seq: 0, dueUs: 0, unsent: undefined, pending: undefined };
      line.socket = await Bun.connect<Line>({ hostname: "127.0.0.1", port: to, data: line, socket: handlers });
      line.socket.setNoDelay(true);
      return line;
    }),
  );
  idle.push(...lines);

  return {
    start(to, by) {
      ledger = to;
      pace = by;
      ticker = setInterval(pump, tickMs);
      pump();
    },
    pump,
    stop() {
      pace = undefined;
      clearInterval(ticker);
    },
    broken,
    close() {
      closed = true;
      clearInterval(ticker);
      for (const { socket } of lines) socket?.end();
    },
  };
}
