/// <reference path="./http-parser.d.ts" />
import { HTTPParser } from "node:_http_common";
import type { Socket } from "node:net";

/** Who sent the request that a connection has under way. */
export interface AnswerReader {
  /** An answer of 1xx; the final one follows. */
  onInformation(): void;
  /** @param rawHeaders names and values in turn, as they came */
  onHead(status: number, rawHeaders: readonly string[]): void;
  /** @param chunk a view, good for the time of the call */
  onBody(chunk: Uint8Array): void;
  /** The answer is complete. */
  onEnd(): void;
  /** And all of the request was sent: the connection is no longer the reader's. */
  onFree(): void;
  /** The connection has gone before the answer was complete. */
  onGone(error: Error): void;
}

/** Whose the connection is while it has nothing under way. */
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

/** Of the status line and all headers. */
const maxHeadBytes = 16 * 1024;

/**
 * What is read at once goes to the parser in pieces, and no further once the connection has been ended: the runtime reads
 * up to 512 KiB, and the parser works through what it is given whatever becomes of the request. A receiver that pours out
 * 1xx answers was heard 4,500 times before it was cut off at the hundredth, and 200 such attempts took 64 MB.
 */
const pieceBytes = 4 * 1024;

/** Up to here head and body leave in one write, which costs a copy and saves a call of the system. */
const maxCopiedBytes = 16 * 1024;

/** The other end has closed the connection in order, but too soon. */
const hangUp = Object.assign(new Error("The other end hung up"), { code: "ECONNRESET" });

/**
 * A connection to a receiver, which has one request under way at a time: HTTP/1.1 straight on the socket, with the parser
 * of the runtime (llhttp). Its `node:http` makes four streams and a dozen events of each request, at 20 of 32 µs.
 *
 *   opened ──socket──▶ ready ──send──▶ under way ──answer complete, and all sent──▶ kept ──send──▶ …
 *                                          └──end, error, an answer that makes no sense──▶ over
 */
export class Connection {
  isOver = false;
  /** Whether an earlier request was answered on it. */
  isReused = false;
  /** Whether not one byte has come since the request went out. */
  heardNothing = true;
  /** The owner's note. */
  idleUntilMs = 0;
  private socket: Socket | undefined;
  private isReady = false;
  private address: string | undefined;
  private readonly parser = new HTTPParser();
  private reader: AnswerReader | null = null;
  private request: RequestBytes | null = null;
  private isSent = false;
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

  /** @param readyEvent "secureConnect" where TLS comes first: until the other end has proved who it is, it is sent nothing */
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

  /** To be called when nothing is under way. */
  send(request: RequestBytes, reader: AnswerReader): void {
    this.reader = reader;
    this.request = request;
    this.isSent = false;
    this.isComplete = false;
    this.heardNothing = true;
    if (this.isReady) this.write();
  }

  /** Ends it at once. Its reader is not told. */
  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.reader = null;
    this.request = null;
    this.socket?.destroy();
    this.owner.onGone(this);
  }

  /** Ends it at once, and tells its reader why. */
  fail(error: Error): void {
    const { reader } = this;
    this.end();
    reader?.onGone(error);
  }

  /** Whether TLS is still being negotiated. `node:tls` keeps the field, without a place in its types. */
  get isHandshaking(): boolean {
    const { socket } = this;
    return socket !== undefined && "secureConnecting" in socket && socket.secureConnecting === true;
  }

  /** Of the other end. To ask for it is a call of the system. */
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
    // Nobody asked: what comes here would be taken for the answer to the next request.
    if (this.reader === null) {
      this.end();
      return;
    }
    this.heardNothing = false;
    const wasComplete = this.isComplete;
    for (let at = 0; at < chunk.length && !this.isOver; at += pieceBytes) {
      const piece = chunk.length <= pieceBytes ? chunk : chunk.subarray(at, at + pieceBytes);
      if (this.isComplete) this.mayBeKept = false;
      else this.parse(piece);
    }
    if (this.isComplete && !wasComplete) this.complete();
  }

  private parse(piece: Uint8Array): void {
    const error = this.parser.execute(piece);
    if (!(error instanceof Error)) return;
    // An answer that is complete stays what it is, whatever follows it.
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

  /** The other end sends no more: the end of an answer that did not say how long it is, or of the connection. */
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

  /** A receiver may answer before it has read all; it gets the rest, as long as there is time. */
  private complete(): void {
    this.reader?.onEnd();
    if (this.isSent) this.free();
  }

  private free(): void {
    const { reader } = this;
    // It may have been ended for what came: by its reader, within the parser.
    if (reader === null) return;
    this.reader = null;
    this.isReused = true;
    if (!this.mayBeKept || !this.owner.keep(this)) this.end();
    reader.onFree();
  }
}
