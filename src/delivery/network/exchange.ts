import { validateHeaderName, validateHeaderValue } from "node:http";
import type { AnswerHead } from "../../domain/delivery.ts";
import type { NoResponseCause } from "../../domain/failure.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Interruption } from "../../lib/interruption.ts";
import { answerHeadOf } from "./answer-head.ts";
import type { AnswerReader, Connection } from "./connection.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import type { Destination } from "./dialler.ts";
import { type LookupError, readFailure } from "./no-response.ts";
import { type BodyRead, ResponseBody } from "./response-body.ts";

export interface OutgoingRequest {
  url: string;
  /** `Host`, `Content-Length` and `Connection` are set by the transport. */
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}

export type Outcome =
  | {
      kind: "no-response";
      cause: NoResponseCause;
      /** A few words, such as "certificate has expired"; never an address. */
      detail?: string;
      durationMs: number;
    }
  | {
      kind: "responded";
      status: number;
      retryAfter: string | undefined;
      /** Null for an acknowledgement: nobody looks for the reason for a success. */
      head: AnswerHead | null;
      /** From the start to the complete head. */
      durationMs: number;
      body: BodyRead;
    };

/** What a URL amounts to, worked out once: where to dial, or the rule that forbids it. */
export type Target =
  | (Destination & {
      readonly allowed: true;
      /** The start of every request: the first line, and `Host`. */
      readonly headStart: string;
      readonly literal?: LiteralCheck;
    })
  | { allowed: false; refusal: LookupError };

/** Judges the address in a URL, which no `lookup` sees, at each attempt. */
export interface LiteralCheck {
  /** Learns what the judgement needs; undefined when it is known. Never rejects. */
  learn(): Promise<void> | undefined;
  refusal(): LookupError | undefined;
}

/** What all exchanges of a transport share. */
export interface Shared {
  readonly clock: Clock;
  readonly pool: ConnectionPool;
  readonly timeoutMs: number;
  readonly onConnection: ((reused: boolean) => void) | undefined;
  /** The other end of a connection is the receiver, not a proxy. */
  readonly isDirect: boolean;
  closed: boolean;
}

/** No timer of a running process fires this late. */
const standstillMs = 500;
/**
 * Time allowed after a standstill for answers that have arrived in the meantime, and for those to what could only be sent
 * after it.
 */
const graceMs = 1_000;

/** Each may be as long as a head: without a limit they would amount to an unlimited body. */
const maxInformationalResponses = 100;

/**
 * One request and its answer. An object with methods, where the rest of the program has functions, because it is made
 * ten thousand times a second: one allocation in place of a dozen closures.
 *
 *   dialling ──head──▶ responded ──body ended, cut, time, abort──▶ over
 *     │  ▲
 *     │  └─ once more, when a kept connection died unanswered
 *     └──error, time, abort──▶ over
 */
export class Exchange implements AnswerReader {
  private connection: Connection | undefined;
  private head = "";
  private body: ResponseBody | undefined;
  private settled = false;
  private informationalResponses = 0;
  private startedAtMs = 0;
  private cancelTimer: (() => void) | undefined;

  constructor(
    private readonly shared: Shared,
    private readonly target: Target,
    private readonly outgoing: OutgoingRequest,
    private readonly signal: Interruption | undefined,
    private readonly resolve: (outcome: Outcome) => void,
  ) {}

  start(): void {
    const { shared, target, signal } = this;
    this.startedAtMs = shared.clock.monotonicMs();
    if (shared.closed || signal?.aborted) {
      this.fail("interrupted", undefined);
      return;
    }
    if (!target.allowed) {
      this.fail(target.refusal.noResponse, target.refusal.detail);
      return;
    }
    // This throws for a header that cannot be sent, so it comes before anything that would have to be undone.
    this.head = this.headOf(target);
    this.cancelTimer = shared.clock.after(shared.timeoutMs, () => this.onTime());
    signal?.addEventListener("abort", this);
    const learning = target.literal?.learn();
    if (learning === undefined) this.dial(target, false);
    else void learning.then(() => this.settled || this.dial(target, false));
  }

  /**
   * A timer that fires late means that this process stood still (stopped, suspended with its machine, or starved). That
   * is not the receiver's silence: its answer may have come long ago, and only has to be read.
   */
  private onTime(): void {
    const isLate = this.elapsedMs() - this.shared.timeoutMs >= standstillMs;
    if (isLate && !this.settled) this.cancelTimer = this.shared.clock.after(graceMs, () => this.stop("timeout"));
    else this.stop("timeout");
  }

  /** The abort listener is the exchange itself. */
  handleEvent(): void {
    this.stop("interrupted");
  }

  private dial(target: Target & { allowed: true }, fresh: boolean): void {
    const { pool, onConnection, closed } = this.shared;
    if (closed) {
      this.fail("interrupted", undefined);
      return;
    }
    const refusal = target.literal?.refusal();
    if (refusal) {
      this.fail(refusal.noResponse, refusal.detail);
      return;
    }
    const head = `${this.head}Connection: ${fresh ? "close" : "keep-alive"}\r\n\r\n`;
    const connection = pool.take(target, fresh);
    this.connection = connection;
    onConnection?.(connection.isReused);
    connection.send({ head, body: this.outgoing.body }, this);
  }

  /** All but its last header. */
  private headOf({ headStart }: Target & { allowed: true }): string {
    const { headers, body } = this.outgoing;
    let head = headStart;
    for (const name in headers) {
      const value = headers[name] as string;
      validateHeaderName(name);
      validateHeaderValue(name, value);
      head += `${name}: ${value}\r\n`;
    }
    return `${head}Content-Length: ${body.length}\r\n`;
  }

  /** The status is complete, and with it the verdict; what follows concerns the attempt log. */
  onHead(status: number, rawHeaders: readonly string[]): void {
    // A final answer below 200 is invalid: we never ask to switch protocols.
    if (status < 200) {
      this.stop("protocol_error");
      return;
    }
    this.body = new ResponseBody(() => this.stop("protocol_error"));
    this.settle({
      kind: "responded",
      status,
      retryAfter: headerOf(rawHeaders, "retry-after"),
      head: status < 300 ? null : answerHeadOf(rawHeaders, this.receiverAddress()),
      durationMs: this.elapsedMs(),
      body: this.body,
    });
  }

  private receiverAddress(): string | undefined {
    return this.shared.isDirect ? this.connection?.remoteAddress : undefined;
  }

  onInformation(): void {
    this.informationalResponses++;
    if (this.informationalResponses > maxInformationalResponses) this.stop("protocol_error");
  }

  onBody(chunk: Uint8Array): void {
    this.body?.take(chunk);
  }

  /**
   * Not before: whoever answers and reads no further holds a socket and the request's body for as long as there is time,
   * and the place of the attempt with them. Otherwise one webhook had 337 connections, and 490 MB, within 2 s.
   */
  onFree(): void {
    this.release();
  }

  onGone(error: Error): void {
    const { connection, shared } = this;
    if (this.settled || connection === undefined) {
      this.release();
      return;
    }
    const { cause, detail } = readFailure(error, connection.isHandshaking);
    const gotNothing = connection.isReused && connection.heardNothing;
    if (shared.closed) this.fail("interrupted", undefined);
    else if (cause === "connection_reset" && gotNothing) this.tryAgain();
    else this.fail(cause, detail);
  }

  /**
   * The server dropped the kept connection as our request went out: the usual end of an idle connection, which says
   * nothing about the server. Tried again immediately, within the same time, and only once: a new connection is not a
   * kept one (hazards, section 3).
   */
  private tryAgain(): void {
    if (this.target.allowed) this.dial(this.target, true);
  }

  /** Ends the exchange from our side, whatever state it is in. */
  private stop(cause: NoResponseCause): void {
    if (!this.settled) this.fail(cause, undefined);
    this.release();
    this.connection?.end();
  }

  private fail(cause: NoResponseCause, detail: string | undefined): void {
    this.release();
    this.settle({ kind: "no-response", cause, ...(detail !== undefined && { detail }), durationMs: this.elapsedMs() });
  }

  private settle(outcome: Outcome): void {
    this.settled = true;
    this.resolve(outcome);
  }

  /** Nothing of the exchange outlives it: no timer, no listener on a signal that many share. */
  private release(): void {
    this.body?.end();
    this.cancelTimer?.();
    this.signal?.removeEventListener("abort", this);
  }

  private elapsedMs(): number {
    return this.shared.clock.monotonicMs() - this.startedAtMs;
  }
}

/** Reads the raw list, because an object such as `response.headers` would have to be built for every answer. */
function headerOf(rawHeaders: readonly string[], name: string): string | undefined {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i] ?? "";
    if (candidate.length === name.length && candidate.toLowerCase() === name) return rawHeaders[i + 1];
  }
  return undefined;
}
