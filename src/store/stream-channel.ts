/** Rules, section 11: how many of a tenant's messages a client can catch up on. */
export const channelMessages = 1_000;

/**
 * And how many bytes of them: 1,000 messages that each contain the longest URL twice still fit. A replay's label is limited
 * only by the body size, so without this an account could fill 64 MiB with 1,000 messages of its own.
 */
export const channelBytes = 5 * 2 ** 20;

/**
 * And how many bytes the channels of all tenants keep together: 1,000 messages of typical length for about 200 tenants. The
 * process grows by 1.75 times as much: 176 MB more with 128 MiB than with 32.
 */
const allChannelsBytes = 64 * 2 ** 20;

/** What a message takes besides its text: an object, a view and a slot in the ring. */
const bytesBeside = 128;
const sizeOf = (message: Uint8Array) => message.length + bytesBeside;

/** Messages go out in chunks of about this size: one write to the socket instead of hundreds. */
const chunkBytes = 32 * 1024;

/**
 * The last messages of one tenant, each encoded once for all readers. Positions count messages from 0. A reader is just a
 * position, so it holds no memory, however far behind it is.
 */
export interface Channel {
  /** Position of the oldest message that is still there. */
  readonly first: number;
  /** Position after the newest one. */
  readonly end: number;
  /** What its messages take, in bytes. */
  readonly heldBytes: number;
  /** Drops the oldest messages until the rest take no more than half of what all of them took. */
  halve(): void;
  /** To be called through `Channels`. */
  push(number: number, message: Uint8Array<ArrayBuffer>): void;
  /** Messages from `position` on, and the position after them. */
  chunkFrom(position: number): { bytes: Uint8Array<ArrayBuffer>; next: number };
  /** Position of the first message above `number`; null when one of those is no longer there. */
  positionAfter(number: number): number | null;
}

/** The channels of all tenants. Together they keep `allChannelsBytes` at most. */
export interface Channels {
  /** @param since no message with this number or a lower one is, or ever was, in the channel */
  add(since: number): Channel;
  /** The one that holds the most gives way, so that a few with long messages cost the others nothing. */
  push(channel: Channel, number: number, message: Uint8Array<ArrayBuffer>): void;
  /** From now on nothing may be pushed to it. */
  remove(channel: Channel): void;
}

export function createChannels(): Channels {
  const channels = new Set<Channel>();
  let heldBytes = 0;

  /** @returns false when nothing is held */
  function halveLargest(): boolean {
    let largest: Channel | undefined;
    for (const channel of channels) if (channel.heldBytes > (largest?.heldBytes ?? 0)) largest = channel;
    if (!largest) return false;
    heldBytes -= largest.heldBytes;
    largest.halve();
    heldBytes += largest.heldBytes;
    return true;
  }

  return {
    add(since) {
      const channel = createChannel(since);
      channels.add(channel);
      return channel;
    },
    push(channel, number, message) {
      heldBytes -= channel.heldBytes;
      channel.push(number, message);
      heldBytes += channel.heldBytes;
      while (heldBytes > allChannelsBytes && halveLargest()) {}
    },
    remove(channel) {
      if (channels.delete(channel)) heldBytes -= channel.heldBytes;
    },
  };
}

function createChannel(since: number): Channel {
  const ring: ({ number: number; bytes: Uint8Array<ArrayBuffer> } | null)[] = [];
  let first = 0;
  let end = 0;
  let heldBytes = 0;
  /** The highest number that is no longer there. */
  let lost = since;
  let latestChunk = { from: -1, end: -1, next: -1, bytes: new Uint8Array(0) };

  const at = (position: number) => {
    const message = ring[position % channelMessages];
    if (!message) throw new RangeError(`The channel has no message at ${position}`);
    return message;
  };

  function dropFirst(): void {
    const { number, bytes } = at(first);
    lost = number;
    heldBytes -= sizeOf(bytes);
    ring[first % channelMessages] = null;
    first += 1;
  }

  return {
    get first() {
      return first;
    },
    get end() {
      return end;
    },

    get heldBytes() {
      return heldBytes;
    },

    halve() {
      const limit = heldBytes / 2;
      while (heldBytes > limit) dropFirst();
    },

    push(number, bytes) {
      while (end > first && (end - first >= channelMessages || heldBytes + sizeOf(bytes) > channelBytes)) dropFirst();
      ring[end % channelMessages] = { number, bytes };
      heldBytes += sizeOf(bytes);
      end += 1;
    },

    chunkFrom(position) {
      // Readers that keep up all ask for the same chunk.
      if (latestChunk.from !== position || latestChunk.end !== end) {
        let next = position;
        let size = 0;
        while (next < end && size < chunkBytes) size += at(next++).bytes.length;
        const parts = Array.from({ length: next - position }, (_, i) => at(position + i).bytes);
        const bytes = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts, size);
        latestChunk = { from: position, end, next, bytes };
      }
      return { bytes: latestChunk.bytes, next: latestChunk.next };
    },

    positionAfter(number) {
      if (number < lost) return null;
      let position = end;
      while (position > first && at(position - 1).number > number) position -= 1;
      return position;
    },
  };
}
