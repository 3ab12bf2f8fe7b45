import { rateLimited } from "../domain/errors.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { allChannelsBytes, type Channel, createChannel } from "./channel.ts";

export type StreamEventKind =
  | "event.accepted"
  | "delivery.attempted"
  | "delivery.finished"
  | "replay.progressed"
  | "account.changed";

export interface Subscription {
  /** Id of the last message that the client has; it gets what came after. */
  lastEventId?: string;
  /** When the session token expires, in ms since the Unix epoch. */
  endsAt: number;
  /** Whether the session token would still be accepted. */
  stillValid(): Promise<boolean>;
}

/** Shows a tenant what happens as it happens (rules, section 11). */
export interface Hub {
  /** `data` is called only if somebody of this tenant listens or may resume. Never blocks, never throws. */
  publish(tenantId: string, kind: StreamEventKind, data: () => Record<string, unknown>): void;
  /** @throws rate_limited `too_many_streams` */
  subscribe(tenantId: string, options: Subscription): ReadableStream<Uint8Array>;
  /** Ends all streams of a tenant and forgets its messages. */
  closeTenant(tenantId: string): void;
  /** A session of the tenant has ended: asks each of its streams whether that was its own. */
  recheckSessions(tenantId: string): void;
  closeAll(): void;
  readonly openStreams: number;
}

/** Rules, section 3. */
export const maxStreamsPerTenant = 50;

/** Rules, section 11: a comment keeps proxies from cutting a quiet stream, and the session is checked along with it. */
export const heartbeatMs = 15_000;

/** How long messages are kept after the last stream of a tenant has closed, so that a reload resumes without a gap. */
export const resumableMs = 2 * 60_000;

/**
 * What may wait in a stream for its reader; beyond, the reader's place in the channel waits instead, which costs nothing.
 * Bun 1.4.5 takes the next chunk of a response's stream only when the socket has taken the last one.
 */
const readerBufferBytes = 128 * 1024;

const encoder = new TextEncoder();
const heartbeatComment = encoder.encode(": keep-alive\n\n");

interface Reader {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  /** Position in the channel of the next message to send. */
  position: number;
  cancelTimer(): void;
  /** Ends the stream if its session token would be refused by now. */
  recheck(): void;
}

interface Audience {
  readonly channel: Channel;
  readonly readers: Set<Reader>;
  /** Messages below this position have been offered to all readers. */
  offered: number;
  flushScheduled: boolean;
  cancelExpiry: (() => void) | null;
}

/** Messages offered together, in one chunk. More at once could overrun the channel before anyone reads. */
const flushEvery = 100;

export function createHub({ clock, log }: { clock: Clock; log: Log }): Hub {
  const processStart = clock.now();
  const audiences = new Map<string, Audience>();
  let lastNumber = 0;
  let openStreams = 0;
  /** What the channels of all audiences take. */
  let heldBytes = 0;

  /** Numbers are shared by all tenants, so an id is never given twice. */
  const nextNumber = () => ++lastNumber;

  const encode = (kind: StreamEventKind | "resync", number: number, data: Record<string, unknown>) =>
    encoder.encode(`event: ${kind}\nid: ${processStart}-${number}\ndata: ${JSON.stringify(data)}\n\n`);

  /**
   * A comment, so that proxies pass the head on; and for those who begin, the id from which they resume when the stream is
   * cut before its first message. An id without data is no message (HTML Standard, section 9.2.6).
   */
  const opening = (lastEventId: string | undefined) =>
    `: open\n${lastEventId === undefined ? `id: ${processStart}-${lastNumber}\n` : ""}\n`;

  function audienceOf(tenantId: string): Audience {
    let audience = audiences.get(tenantId);
    if (!audience) {
      // A number of its own: what was not recorded before lies below it, so nobody resumes across that gap.
      const channel = createChannel(nextNumber());
      audience = { channel, readers: new Set(), offered: 0, flushScheduled: false, cancelExpiry: null };
      audiences.set(tenantId, audience);
    }
    return audience;
  }

  function forget(tenantId: string, { channel }: Audience): void {
    audiences.delete(tenantId);
    heldBytes -= channel.heldBytes;
  }

  function push({ channel }: Audience, number: number, message: Uint8Array<ArrayBuffer>): void {
    const before = channel.heldBytes;
    channel.push(number, message);
    heldBytes += channel.heldBytes - before;
    while (heldBytes > allChannelsBytes && halveLargest()) {}
  }

  /** The tenant that keeps most gives way, so that a few with long messages cost the others nothing. @returns false when nothing is kept */
  function halveLargest(): boolean {
    let largest: Channel | undefined;
    for (const { channel } of audiences.values()) {
      if (channel.heldBytes > (largest?.heldBytes ?? 0)) largest = channel;
    }
    if (!largest) return false;
    heldBytes -= largest.heldBytes;
    largest.halve();
    heldBytes += largest.heldBytes;
    return true;
  }

  /** Hands a reader what it has room for. One that has been overtaken by the channel is told so and goes on at its end. */
  function feed({ channel }: Audience, reader: Reader): void {
    const { controller } = reader;
    while ((controller.desiredSize ?? 0) > 0) {
      if (reader.position < channel.first) {
        reader.position = channel.end;
        controller.enqueue(encode("resync", nextNumber(), {}));
      } else if (reader.position < channel.end) {
        const { bytes, next } = channel.chunkFrom(reader.position);
        reader.position = next;
        controller.enqueue(bytes);
      } else {
        return;
      }
    }
  }

  function flush(audience: Audience): void {
    audience.offered = audience.channel.end;
    for (const reader of audience.readers) feed(audience, reader);
  }

  function publish(tenantId: string, kind: StreamEventKind, data: () => Record<string, unknown>): void {
    const audience = audiences.get(tenantId);
    if (!audience) return;
    try {
      const number = nextNumber();
      push(audience, number, encode(kind, number, data()));
    } catch (error) {
      log.write("error", "stream.message_failed", { tenant: tenantId, kind, error: String(error) });
      return;
    }
    if (audience.channel.end - audience.offered >= flushEvery) {
      flush(audience);
    } else if (!audience.flushScheduled && audience.readers.size > 0) {
      audience.flushScheduled = true;
      setImmediate(() => {
        audience.flushScheduled = false;
        flush(audience);
      });
    }
  }

  /** Where a client goes on: after the message that it names, or nowhere if messages after that are lost. */
  function resumePosition({ channel }: Audience, lastEventId: string): number | null {
    const [, start, number] = /^(\d{1,15})-(\d{1,15})$/.exec(lastEventId) ?? [];
    if (Number(start) !== processStart || Number(number) > lastNumber) return null;
    return channel.positionAfter(Number(number));
  }

  function subscribe(tenantId: string, { lastEventId, endsAt, stillValid }: Subscription) {
    const audience = audienceOf(tenantId);
    const { channel, readers } = audience;
    if (readers.size >= maxStreamsPerTenant) {
      throw rateLimited(
        `The account has ${maxStreamsPerTenant} open streams, which is the limit; close one.`,
        "too_many_streams",
        heartbeatMs / 1000,
      );
    }
    audience.cancelExpiry?.();
    audience.cancelExpiry = null;

    let reader: Reader | undefined;
    const stream = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          const resumed = lastEventId === undefined ? channel.end : resumePosition(audience, lastEventId);
          controller.enqueue(encoder.encode(opening(lastEventId)));
          const opened: Reader = {
            controller,
            position: resumed ?? channel.end,
            cancelTimer() {},
            recheck: () => void checkSession(opened),
          };
          if (resumed === null) controller.enqueue(encode("resync", nextNumber(), {}));
          readers.add(opened);
          openStreams += 1;
          reader = opened;
          feed(audience, opened);
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

    function beat(opened: Reader): void {
      opened.cancelTimer = clock.after(Math.min(heartbeatMs, endsAt - clock.now()), () => {
        if (clock.now() >= endsAt) return end(tenantId, audience, opened);
        if ((opened.controller.desiredSize ?? 0) > 0) opened.controller.enqueue(heartbeatComment);
        beat(opened);
        opened.recheck();
      });
    }

    async function checkSession(opened: Reader): Promise<void> {
      try {
        if (!(await stillValid())) end(tenantId, audience, opened);
      } catch (error) {
        // The session could not be read now; the next heartbeat asks again.
        log.write("warn", "stream.session_unchecked", { tenant: tenantId, error: String(error) });
      }
    }

    return stream;
  }

  /** Ends a stream from this side. A reader without room is stuck and would hold the connection for ever. */
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
    recheckSessions(tenantId) {
      for (const reader of audiences.get(tenantId)?.readers ?? []) reader.recheck();
    },
    closeAll() {
      for (const tenantId of [...audiences.keys()]) closeTenant(tenantId);
    },
    get openStreams() {
      return openStreams;
    },
  };
}
