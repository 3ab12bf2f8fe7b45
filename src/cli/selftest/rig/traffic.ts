import { type Clock, sleep } from "../../../lib/clock.ts";
import { fork, type Random } from "../../../lib/random.ts";
import type { Account } from "./account.ts";
import { type Connection, connect } from "./connection.ts";
import { type Message, statusIn, writeMessage } from "./http-message.ts";
import type { Ledger, SentRequest } from "./ledger.ts";
import { createPayload } from "./payload.ts";

/** Clients that send events while the server answers, each over its own connection, one request at a time. */
export interface Traffic {
  /** Sends until the server goes away. */
  run(port: number): Run;
  /** Sends to one of several servers at a time, moving on to another when it goes away. */
  roam(options: RoamOptions): Roaming;
  /** Only repeats what was last sent under an idempotency key. */
  repeat(port: number): Promise<void>;
}

export interface Run {
  /** Resolves with the first answer, or when there will be none. */
  readonly flowing: Promise<void>;
  readonly ended: Promise<void>;
  /**
   * Closes the connections. A client that has not sent anything yet does not learn that the server is gone: the listener's
   * system accepts a connection only with its first bytes, and drops the others without telling anybody.
   */
  hangUp(): void;
}

export interface RoamOptions {
  readonly clock: Clock;
  /** The port of a server that listens; null: none does at the moment. */
  pickPort(): number | null;
  /** A client's pause between two requests. */
  pauseMs(): number;
}

export interface Roaming {
  /** Closes the connections to a server that is gone, see `Run`. */
  leave(port: number): void;
  /** Resolves when every request under way has its answer. */
  stop(): Promise<void>;
}

export interface TrafficOptions {
  readonly ledger: Ledger;
  /** One entry for each client. */
  readonly clients: readonly { account: Account; batches: boolean }[];
  readonly random: Random;
  /** Acknowledged deliveries of an account that may be on their way before its clients wait. */
  readonly window: number;
  /** What an answer other than 202 means. Without any answer, the request's fate is open. */
  onRefusal(request: SentRequest, answer: Message): void;
}

/** How many requests under an idempotency key a client repeats when the server is back. */
const repeatedAfterwards = 3;
const keyedShare = 0.3;
const batchShare = 0.2;
const largestBatch = 50;
/** How long a client that has lost its server waits before it tries another. */
const betweenServersMs = 50;

export function createTraffic({ ledger, clients, random, window, onRefusal }: TrafficOptions): Traffic {
  const senders = clients.map((client) => createSender(client, fork(random)));

  function createSender({ account, batches }: TrafficOptions["clients"][number], random: Random) {
    /** The most recent requests with a key, oldest first. */
    const keyed: SentRequest[] = [];

    /** Resolves with false when the server has gone away. */
    async function exchange(connection: Connection, request: SentRequest): Promise<boolean> {
      const answer = await connection.send(request.bytes);
      if (answer === null) return false;
      if (statusIn(answer) === 202) ledger.acknowledged(request, eventIdsIn(answer));
      else onRefusal(request, answer);
      return true;
    }

    function compose(): SentRequest {
      const isBatch = batches && random.chance(batchShare);
      const count = isBatch ? random.between(2, largestBatch) : 1;
      const payloads = Array.from({ length: count }, (_, i) => createPayload(random, ledger.figures.sent + i + 1));
      const key = random.chance(keyedShare) ? `key-${ledger.figures.sent + 1}` : null;
      return ledger.add(account, payloads, writeIngestRequest(account, payloads, isBatch, key), key);
    }

    async function repeat(connection: Connection): Promise<boolean> {
      for (const request of [...keyed]) if (!(await exchange(connection, request))) return false;
      return true;
    }

    return {
      async repeat(port: number): Promise<void> {
        const connection = await connect(port);
        if (connection) await repeat(connection);
        connection?.close();
      },
      /** Sends until the connection is closed or it is told to stop. */
      async run(
        port: number,
        open: Map<Connection, number>,
        onAnswer: () => unknown,
        stopped: Promise<void> = new Promise(() => {}),
      ): Promise<void> {
        const connection = await connect(port);
        if (connection === null) return;
        open.set(connection, port);
        let isOpen = true;
        const ended = Promise.race([connection.closed, stopped]).then(() => {
          isOpen = false;
        });
        if (!(await repeat(connection))) return;
        while (isOpen) {
          await Promise.race([ledger.whenOnTheWayBelow(account, window), ended]);
          if (!isOpen) break;
          const request = compose();
          if (request.idempotencyKey !== null && keyed.push(request) > repeatedAfterwards) keyed.shift();
          if (!(await exchange(connection, request))) break;
          await onAnswer();
        }
        open.delete(connection);
        connection.close();
      },
    };
  }

  function closeThose(open: ReadonlyMap<Connection, number>, gone?: number): void {
    for (const [connection, port] of open) if (gone === undefined || port === gone) connection.close();
  }

  return {
    run(port) {
      const { promise: flowing, resolve } = Promise.withResolvers<void>();
      const open = new Map<Connection, number>();
      const ended = Promise.all(senders.map((sender) => sender.run(port, open, resolve))).then(() => resolve());
      return { flowing, ended, hangUp: () => closeThose(open) };
    },
    roam({ clock, pickPort, pauseMs }) {
      const open = new Map<Connection, number>();
      const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
      let isStopped = false;
      const pause = (ms: number) => Promise.race([sleep(clock, ms), stopped]);
      const ended = senders.map(async (sender) => {
        while (!isStopped) {
          const port = pickPort();
          if (port !== null) await sender.run(port, open, () => pause(pauseMs()), stopped);
          await pause(betweenServersMs);
        }
      });
      return {
        leave: (port) => closeThose(open, port),
        async stop() {
          isStopped = true;
          stop();
          await Promise.all(ended);
        },
      };
    },
    async repeat(port) {
      await Promise.all(senders.map((sender) => sender.repeat(port)));
    },
  };
}

const opening = Buffer.from('{"payload":');
const comma = Buffer.from(",");
const closing = Buffer.from("}");

/** The request with the payloads embedded byte for byte. */
export function writeIngestRequest(
  { apiKey }: Pick<Account, "apiKey">,
  payloads: readonly Buffer[],
  isBatch: boolean,
  idempotencyKey: string | null,
): Buffer {
  const entries = payloads.flatMap((payload, i) => [...(i > 0 ? [comma] : []), opening, payload, closing]);
  const body = Buffer.concat(isBatch ? [Buffer.from('{"events":['), ...entries, Buffer.from("]}")] : entries);
  const headers = {
    Host: "127.0.0.1",
    Authorization: `Bearer ${apiKey}`,
    "Content-Type": "application/json",
    ...(idempotencyKey !== null && { "Idempotency-Key": idempotencyKey }),
  };
  return writeMessage(`POST /v1/ingest${isBatch ? "/batch" : ""} HTTP/1.1`, headers, body);
}

/** The event ids in a 202. */
export function eventIdsIn({ body }: Message): string[] {
  const { eventId, eventIds } = JSON.parse(body.toString("utf8")) as { eventId?: string; eventIds?: string[] };
  return eventIds ?? (eventId === undefined ? [] : [eventId]);
}
