/// <reference path="./http-parser.d.ts" />
import { HTTPParser } from "node:_http_common";
import type { Socket } from "node:net";

/** Receives the answer to the request that a connection has under way. */
export interface AnswerReader {
  /** A 1xx answer; the final one follows. */
  onInformation(): void;
  /** @param rawHeaders names and values alternating, as they came */
  onHead(status: number, rawHeaders: readonly string[]): void;
  /** @param chunk a view, valid only during the call */
  onBody(chunk: Uint8Array): void;
  /** The answer is complete and all of the request was sent: the connection no longer belongs to the reader. */
  onFree(): void;
  /** The connection was lost before the answer was complete. */
  onGone(error: Error): void;
}

/** Owns the connection while it has nothing under way. */
export interface ConnectionOwner {
  /** Asked when an answer is complete. @returns whether the connection is kept for another request */
  keep(connection: Connection): boolean;
  onGone(connection: Connection): void;
}

/** `head` ends with an empty line. */
export interface RequestBytes {
  head: string;
  body: Uint8Array;
}

/** For the status line and all headers together. */
const maxHeadBytes = 16 * 1024;

/**
 * For everything that comes in answer to a request, counted piece by piece: heads, a body of 64 KiB and its framing take less. The
 * parser passes over empty lines before a head and leading zeros of a chunk size without end, and tells nobody: an attempt read
 * 9 GB of them, and took a core for its 10 s. What follows a complete answer while the request is still being sent counts too.
 */
const maxAnswerBytes = 512 * 1024;

/**
 * Whatever one read returns goes to the parser in pieces, and no further once the connection has been ended: the runtime
 * reads up to 512 KiB, and the parser works through all it is given, whatever becomes of the request. A receiver pouring
 * out 1xx answers was heard 4,500 times before it was cut off at the hundredth, and 200 such attempts took 64 MB.
 */
const pieceBytes = 4 * 1024;

/** Up to this size, head and body go out in one write, which costs a copy and saves a system call. */
const maxCopiedBytes = 16 * 1024;

/** The other end closed the connection cleanly, but too soon. */
const hangUp = Object.assign(new Error("The other end hung up"), { code: "ECONNRESET" });

/** The code has the form of the parser's own. */
const overflow = Object.assign(new Error("The answer is too long"), { code: "HPE_ANSWER_OVERFLOW" });

/**
 * A connection to a receiver, with one request under way at a time: HTTP/1.1 straight on the socket, with the runtime's
 * parser (llhttp). Its `node:http` turns each request into four streams and a dozen events, at 20 of 32 µs.
 *
 *   opened ──socket──▶ ready ──send──▶ under way ──answer complete, and all sent──▶ kept ──send──▶ …
 *                                          └──end, error, an answer that makes no sense──▶ over
 */
export class Connection {
  isOver = false;
  /** Whether an earlier request was answered on it. */
  isReused = false;
  /** For the owner's use. */
  idleUntilMs = 0;
  private socket: Socket | undefined;
  private isReady = false;
  private address: string | undefined;
  private readonly parser = new HTTPParser();
  private reader: AnswerReader | null = null;
  private request: RequestBytes | null = null;
  private isSent = false;
  /** Since the request went out. */
  private heardBytes = 0;
  private rawHeaders: string[] = [];
  private isInformation = false;
  private isComplete = false;
  private mayBeKept = false;

  constructor(
    /** See `Target`. */
    readonly origin: string,
    private readonly owner: ConnectionOwner,
  ) {
    const { parser } = this;
    parser.initialize(HTTPParser.RESPONSE, {}, maxHeadBytes, HTTPParser.kLenientNone);
    parser[HTTPParser.kOnMessageBegin] = () => this.onMessageBegin();
    parser[HTTPParser.kOnHeaders] = (rawHeaders) => void this.rawHeaders.push(...rawHeaders);
    parser[HTTPParser.kOnHeadersComplete] = (
      _major,
      _minor,
      rawHeaders,
      _method,
      _url,
      status,
      _message,
      _upgrade,
      keep,
    ) => this.onHead(status, rawHeaders, keep);
    parser[HTTPParser.kOnBody] = (chunk) => this.reader?.onBody(chunk);
    parser[HTTPParser.kOnMessageComplete] = () => {
      this.isComplete = !this.isInformation;
    };
  }

  /** @param readyEvent "secureConnect" where TLS comes first: nothing is sent until the other end has proved who it is */
  attach(socket: Socket, readyEvent: "connect" | "secureConnect" | null): void {
    if (this.isOver) {
      socket.destroy();
      return;
    }
    this.socket = socket;
    socket.on("data", (chunk: Uint8Array) => this.receive(chunk));
    socket.on("end", () => this.onEnd());
    socket.on("error", (error: Error) => this.fail(error));
    socket.on("close", () => this.fail(hangUp));
    if (readyEvent === null) this.onReady();
    else socket.once(readyEvent, () => this.onReady());
  }

  /** Call it only when nothing is under way. */
  send(request: RequestBytes, reader: AnswerReader): void {
    this.reader = reader;
    this.request = request;
    this.isSent = false;
    this.isComplete = false;
    this.heardBytes = 0;
    if (this.isReady) this.write();
  }

  /** Ends it immediately, without telling its reader. */
  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.reader = null;
    this.request = null;
    this.socket?.destroy();
    this.owner.onGone(this);
  }

  /** Ends it immediately, and tells its reader why. */
  fail(error: Error): void {
    const { reader } = this;
    this.end();
    reader?.onGone(error);
  }

  /** Whether not a single byte has arrived since the request went out. */
  get heardNothing(): boolean {
    return this.heardBytes === 0;
  }

  /** Whether TLS is still being negotiated. `node:tls` has the field but does not declare it in its types. */
  get isHandshaking(): boolean {
    const { socket } = this;
    return socket !== undefined && "secureConnecting" in socket && socket.secureConnecting === true;
  }

  /** The other end's. Asking for it is a system call. */
  get remoteAddress(): string | undefined {
    this.address ??= this.socket?.remoteAddress;
    return this.address;
  }

  private onReady(): void {
    this.isReady = true;
    if (this.request !== null) this.write();
  }

  private write(): void {
    const { socket, request } = this;
    if (socket === undefined || request === null) return;
    const { head, body } = request;
    this.request = null;
    const onSent = () => this.onSent();
    const copied = body.length <= maxCopiedBytes ? body.length : 0;
    const first = Buffer.allocUnsafe(head.length + copied);
    first.write(head, "latin1");
    if (copied > 0 || body.length === 0) {
      first.set(body, head.length);
      socket.write(first, onSent);
    } else {
      socket.write(first);
      socket.write(body, onSent);
    }
  }

  private onSent(): void {
    this.isSent = true;
    if (this.isComplete) this.free();
  }

  private receive(chunk: Uint8Array): void {
    // Unsolicited: it would be taken for the answer to the next request.
    if (this.reader === null) {
      this.end();
      return;
    }
    const wasComplete = this.isComplete;
    for (let at = 0; at < chunk.length && !this.isOver; at += pieceBytes) {
      const piece = chunk.length <= pieceBytes ? chunk : chunk.subarray(at, at + pieceBytes);
      this.heardBytes += piece.length;
      if (this.heardBytes > maxAnswerBytes) this.fail(overflow);
      else if (this.isComplete) this.mayBeKept = false;
      else this.parse(piece);
    }
    if (this.isComplete && !wasComplete) this.complete();
  }

  private parse(piece: Uint8Array): void {
    const error = this.parser.execute(piece);
    if (!(error instanceof Error)) return;
    // A complete answer stands, whatever follows it.
    if (this.isComplete) this.mayBeKept = false;
    else this.fail(error);
  }

  private onMessageBegin(): void {
    if (this.isComplete) this.mayBeKept = false;
    this.rawHeaders = [];
  }

  /** @returns whether a body is to be expected; 1: none, whatever the headers say */
  private onHead(status: number, rawHeaders: string[] | undefined, shouldKeepAlive: boolean): 0 | 1 {
    if (this.isComplete) return 1;
    this.isInformation = status >= 100 && status < 200 && status !== 101;
    if (this.isInformation) {
      this.reader?.onInformation();
      return 1;
    }
    this.mayBeKept = shouldKeepAlive;
    this.reader?.onHead(status, rawHeaders ?? this.rawHeaders);
    return 0;
  }

  /** The other end will send no more: that ends an answer that did not say how long it is, or the connection. */
  private onEnd(): void {
    const wasComplete = this.isComplete;
    if (this.reader === null) {
      this.end();
      return;
    }
    if (!wasComplete) this.parser.finish();
    this.mayBeKept = false;
    if (!this.isComplete) this.fail(hangUp);
    else if (!wasComplete) this.complete();
  }

  /**
   * A receiver may answer before it has read everything; it still gets the rest while there is time. Until then the
   * connection is in use.
   */
  private complete(): void {
    if (this.isSent) this.free();
  }

  private free(): void {
    const { reader } = this;
    // Its reader may have ended it because of what came, from within the parser.
    if (reader === null) return;
    this.reader = null;
    this.isReused = true;
    if (!this.mayBeKept || !this.owner.keep(this)) this.end();
    reader.onFree();
  }
}
