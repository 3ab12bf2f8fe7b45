import { type Connection, connect } from "../../../src/cli/selftest/rig/connection.ts";
import { statusIn, writeMessage } from "../../../src/cli/selftest/rig/http-message.ts";

/**
 * Events at an even rate, whatever becomes of the servers, to each of them in turn. Every other request goes on a connection that is
 * kept from one to the next, the others each on a new one. None is ever sent twice.
 */
export interface Load {
  start(): void;
  /** Resolves when all that was sent has its answer, or will have none. */
  stop(): Promise<void>;
  /** By id, when each was acknowledged, by `performance.now()`. */
  readonly acknowledged: ReadonlyMap<string, number>;
  /** What became of the others: refused, broken off, another status than 202. */
  readonly faults: readonly string[];
  /** Of each acknowledged request: when it was begun, by `performance.now()`, and how long it took. */
  readonly answers: readonly { readonly at: number; readonly tookMs: number }[];
}

export interface LoadOptions {
  ports: readonly number[];
  /** One of each account, in turn. */
  apiKeys: readonly string[];
  eventsPerSecond: number;
}

const tickMs = 5;

export function createLoad({ ports, apiKeys, eventsPerSecond }: LoadOptions): Load {
  const acknowledged = new Map<string, number>();
  const faults: string[] = [];
  const answers: { at: number; tookMs: number }[] = [];
  const idle = new Map<number, Connection[]>(ports.map((port) => [port, []]));
  const underWay = new Set<Promise<void>>();
  let timer: ReturnType<typeof setInterval> | null = null;

  async function open(port: number, isKept: boolean): Promise<Connection | null> {
    const kept = isKept ? idle.get(port)?.shift() : undefined;
    if (kept) return kept;
    const connection = await connect(port);
    const forget = () => {
      const left = idle.get(port)?.filter((one) => one !== connection) ?? [];
      idle.set(port, left);
    };
    void connection?.closed.then(forget);
    return connection;
  }

  async function send(nth: number): Promise<void> {
    const port = ports[nth % ports.length] ?? 0;
    const isKept = Math.floor(nth / ports.length) % 2 === 0;
    const startedAt = performance.now();
    const connection = await open(port, isKept);
    if (connection === null) {
      faults.push(`refused at ${port}`);
      return;
    }
    const answer = await connection.send(
      writeMessage(
        "POST /v1/ingest HTTP/1.1",
        {
          Host: `localhost:${port}`,
          Authorization: `Bearer ${apiKeys[nth % apiKeys.length]}`,
          "Content-Type": "application/json",
          ...(!isKept && { Connection: "close" }),
        },
        Buffer.from(JSON.stringify({ payload: { nth, pad: "x".repeat(280) } })),
      ),
    );
    if (answer === null) {
      faults.push(
        `broken off at ${port}${isKept ? ", kept" : ""} after ${Math.round(performance.now() - startedAt)} ms`,
      );
      return;
    }
    const isLast = /close/i.test(answer.headers.get("connection") ?? "");
    if (isKept && !isLast) idle.get(port)?.push(connection);
    else connection.close();
    const status = statusIn(answer);
    if (status !== 202) {
      faults.push(`${status} at ${port}: ${answer.body}`);
      return;
    }
    answers.push({ at: startedAt, tookMs: performance.now() - startedAt });
    const { eventId } = JSON.parse(answer.body.toString("utf8"));
    acknowledged.set(eventId, performance.now());
  }

  return {
    acknowledged,
    faults,
    answers,
    start() {
      const startedAt = performance.now();
      let sent = 0;
      timer = setInterval(() => {
        const owed = ((performance.now() - startedAt) / 1000) * eventsPerSecond;
        for (; sent < owed; sent += 1) {
          const request = send(sent).finally(() => underWay.delete(request));
          underWay.add(request);
        }
      }, tickMs);
    },
    async stop() {
      if (timer !== null) clearInterval(timer);
      await Promise.all(underWay);
      for (const connections of idle.values()) for (const one of connections) one.close();
    },
  };
}
