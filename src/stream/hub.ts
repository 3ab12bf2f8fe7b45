import { rateLimited, unavailable } from "../domain/errors.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { encodeMessage, type StreamEventKind, type StreamLog, type Tail } from "../store/stream-log.ts";

export interface Subscription {
  /** Id of the session token; see `closeSession`. */
  sessionId: string;
  /** Id of the last message that the client has; it gets the ones after it. */
  lastEventId?: string;
  /** When the session token expires, in ms since the Unix epoch. */
  endsAt: number;
  /** Whether the session token would still be accepted. */
  stillValid(): Promise<boolean>;
}

/** Shows a tenant what happens, as it happens (rules, section 11). */
export interface Hub {
  /** `data` is called only if somebody of this tenant is listening or may resume. Never blocks, never throws. */
  publish(tenantId: string, kind: StreamEventKind, data: () => Record<string, unknown>): void;
  /** @throws rate_limited `too_many_streams`; unavailable `too_many_streams_in_all` */
  subscribe(tenantId: string, options: Subscription): ReadableStream<Uint8Array>;
  /** Ends all streams of a tenant and forgets its messages. */
  closeTenant(tenantId: string): void;
  /** Ends the streams that were opened with this session token. */
  closeSession(sessionId: string): void;
  closeAll(): void;
  readonly openStreams: number;
}

/** Rules, section 3. */
export const maxStreamsPerTenant = 50;

/** Of all accounts together; each takes 12 KB and a descriptor. */
export const maxStreamsInAll = 20_000;

/** Rules, section 11: a comment keeps proxies from cutting a quiet stream, and the session is checked at the same time. */
export const heartbeatMs = 15_000;

/** How long messages are kept after the last stream of a tenant has closed, so that a reload resumes without a gap. */
export const resumableMs = 2 * 60_000;

/**
 * How many bytes may wait in a stream for its reader; beyond that, only the reader's place in the log is kept, which costs
 * nothing. Bun 1.4.5 takes the next chunk of a response's stream only when the socket has taken the last one.
 */
const readerBufferBytes = 128 * 1024;

const encoder = new TextEncoder();
const heartbeatComment = encoder.encode(": keep-alive\n\n");

interface Reader {
  readonly sessionId: string;
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  /** Position in the log of the next message to send; null until the log is ready. */
  position: number | null;
  cancelTimer(): void;
}

interface Audience {
  readonly tail: Tail;
  readonly readers: Set<Reader>;
  /** Messages below this position have been offered to all readers. */
  offered: number;
  flushScheduled: boolean;
  cancelExpiry: (() => void) | null;
}

/** How many messages are offered together, in one chunk. More could overrun the log before anyone reads. */
const flushEvery = 100;

export interface HubDeps {
  clock: Clock;
  log: Log;
  messages: StreamLog;
  /** @default maxStreamsInAll */
  mostStreams?: number;
}

export function createHub({ clock, log, messages, mostStreams = maxStreamsInAll }: HubDeps): Hub {
  const audiences = new Map<string, Audience>();
  let openStreams = 0;

  const resync = (tail: Tail) => encodeMessage("resync", tail.endId(), {});

  /**
   * A comment, so that proxies pass the response head on; and for new clients, the id to resume from if the stream is cut
   * before its first message. An id without data is not a message (HTML Standard, section 9.2.6).
   */
  const opening = (tail: Tail, lastEventId: string | undefined) =>
    encoder.encode(`: open\n${lastEventId === undefined ? `id: ${tail.endId()}\n` : ""}\n`);

  function audienceOf(tenantId: string): Audience {
    const present = audiences.get(tenantId);
    if (present) return present;
    const tail = messages.watch(tenantId, () => offer(audience));
    const audience: Audience = { tail, readers: new Set(), offered: 0, flushScheduled: false, cancelExpiry: null };
    audiences.set(tenantId, audience);
    return audience;
  }

  function forget(tenantId: string, { tail }: Audience): void {
    audiences.delete(tenantId);
    tail.forget();
  }

  /** Hands a reader what it has room for. A reader that the log has overtaken is told so and continues at the log's end. */
  function feed({ tail }: Audience, reader: Reader): void {
    const { controller } = reader;
    while (reader.position !== null && (controller.desiredSize ?? 0) > 0) {
      if (reader.position < tail.first) {
        reader.position = tail.end;
        controller.enqueue(resync(tail));
      } else if (reader.position < tail.end) {
        const { bytes, next } = tail.chunkFrom(reader.position);
        reader.position = next;
        controller.enqueue(bytes);
      } else {
        return;
      }
    }
  }

  function flush(audience: Audience): void {
    audience.offered = audience.tail.end;
    for (const reader of audience.readers) feed(audience, reader);
  }

  /** Called when there are more messages: they go out together with any others from this turn of the event loop. */
  function offer(audience: Audience): void {
    if (audience.tail.end - audience.offered >= flushEvery) {
      flush(audience);
    } else if (!audience.flushScheduled && audience.readers.size > 0) {
      audience.flushScheduled = true;
      setImmediate(() => {
        audience.flushScheduled = false;
        flush(audience);
      });
    }
  }

  function publish(tenantId: string, kind: StreamEventKind, data: () => Record<string, unknown>): void {
    try {
      messages.append(tenantId, kind, data);
    } catch (error) {
      log.write("error", "stream.message_failed", { tenant: tenantId, kind, error: String(error) });
    }
  }

  /**
   * Where there are as many streams as there may be, the account that has most of them gives up its oldest to one that has
   * fewer: twenty accounts with fifty each would otherwise keep everybody else out. Its client comes back, and is refused.
   */
  function refuseTooMany(tenantId: string): void {
    const own = audiences.get(tenantId)?.readers.size ?? 0;
    if (own >= maxStreamsPerTenant) throw tooManyStreams();
    if (openStreams < mostStreams) return;
    let most: [string, Audience] | undefined;
    for (const each of audiences) if (each[1].readers.size > (most?.[1].readers.size ?? own + 1)) most = each;
    const [oldest] = most?.[1].readers ?? [];
    if (!most || !oldest) throw tooManyInAll();
    end(...most, oldest);
  }

  function subscribe(tenantId: string, { sessionId, lastEventId, endsAt, stillValid }: Subscription) {
    refuseTooMany(tenantId);
    const audience = audienceOf(tenantId);
    const { tail, readers } = audience;
    audience.cancelExpiry?.();
    audience.cancelExpiry = null;

    let reader: Reader | undefined;
    const stream = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          const opened: Reader = { sessionId, controller, position: null, cancelTimer() {} };
          readers.add(opened);
          openStreams += 1;
          reader = opened;
          const ready = tail.ready();
          if (ready === null) begin(opened);
          else ready.then(() => readers.has(opened) && begin(opened)).catch((error) => breakOff(opened, error));
          beat(opened);
        },
        pull() {
          if (reader && readers.has(reader)) feed(audience, reader);
        },
        cancel() {
          if (reader) leave(tenantId, audience, reader);
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: readerBufferBytes }),
    );

    function begin(opened: Reader): void {
      const { controller } = opened;
      const resumed = lastEventId === undefined ? tail.end : tail.positionAfter(lastEventId);
      controller.enqueue(opening(tail, lastEventId));
      if (resumed === null) controller.enqueue(resync(tail));
      opened.position = resumed ?? tail.end;
      feed(audience, opened);
    }

    /** The client comes back, and finds a newly created log. */
    function breakOff(opened: Reader, error: unknown): void {
      if (!leave(tenantId, audience, opened)) return;
      log.write("warn", "stream.unavailable", { tenant: tenantId, error: String(error) });
      opened.controller.error(error);
      if (readers.size > 0 || audiences.get(tenantId) !== audience) return;
      audience.cancelExpiry?.();
      forget(tenantId, audience);
    }

    function beat(opened: Reader): void {
      opened.cancelTimer = clock.after(Math.min(heartbeatMs, endsAt - clock.now()), () => {
        if (clock.now() >= endsAt) return end(tenantId, audience, opened);
        if ((opened.controller.desiredSize ?? 0) > 0) opened.controller.enqueue(heartbeatComment);
        beat(opened);
        void checkSession(opened);
      });
    }

    /** Ends the stream if its session token would no longer be accepted. */
    async function checkSession(opened: Reader): Promise<void> {
      try {
        if (!(await stillValid())) end(tenantId, audience, opened);
      } catch (error) {
        // The session could not be read; the next heartbeat asks again.
        log.write("warn", "stream.session_unchecked", { tenant: tenantId, error: String(error) });
      }
    }

    return stream;
  }

  /** Ends a stream from this side. A reader without room is stuck and would hold the connection forever. */
  function end(tenantId: string, audience: Audience, reader: Reader): void {
    if (!leave(tenantId, audience, reader)) return;
    if ((reader.controller.desiredSize ?? 0) > 0) reader.controller.close();
    else reader.controller.error(new Error("The stream has ended"));
  }

  function leave(tenantId: string, audience: Audience, reader: Reader): boolean {
    if (!audience.readers.delete(reader)) return false;
    openStreams -= 1;
    reader.cancelTimer();
    if (audience.readers.size === 0 && audiences.get(tenantId) === audience) {
      audience.cancelExpiry = clock.after(resumableMs, () => forget(tenantId, audience));
    }
    return true;
  }

  function closeTenant(tenantId: string): void {
    const audience = audiences.get(tenantId);
    if (!audience) return;
    for (const reader of [...audience.readers]) end(tenantId, audience, reader);
    audience.cancelExpiry?.();
    forget(tenantId, audience);
  }

  return {
    publish,
    subscribe,
    closeTenant,
    closeSession(sessionId) {
      for (const [tenantId, audience] of audiences) {
        for (const reader of audience.readers) if (reader.sessionId === sessionId) end(tenantId, audience, reader);
      }
    },
    closeAll() {
      for (const tenantId of [...audiences.keys()]) closeTenant(tenantId);
    },
    get openStreams() {
      return openStreams;
    },
  };
}

/** A stream is refused until one of the account's ends. */
export const tooManyStreams = () =>
  rateLimited(
    `The account has ${maxStreamsPerTenant} open streams, which is the limit; close one.`,
    "too_many_streams",
    heartbeatMs / 1000,
  );

/** All streams of the server, of all accounts, are taken. */
const tooManyInAll = () =>
  unavailable(
    "The server has as many open streams as it may; retry after the number of seconds in Retry-After.",
    "too_many_streams_in_all",
    heartbeatMs / 1000,
  );
