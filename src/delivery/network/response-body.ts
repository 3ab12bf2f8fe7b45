/**
 * The body of an answer, read for the attempt log only: the verdict is the status (rules, section 8). A stall, a
 * reset or an endless body changes nothing, so nothing here rejects.
 */
export interface BodyRead {
  /**
   * Whether reading has ended: at the body's end if all of the request was sent, at 64 KiB or 1,024 chunks, with the
   * attempt's time, or by a reset.
   */
  readonly ended: boolean;
  /** The first bytes that have come so far, 4 KiB at most; if more came, without a character that this would cut. */
  received(): Uint8Array;
  /** Resolves when reading has ended. */
  readonly done: Promise<void>;
}

/** What the attempt log keeps. */
export const maxKeptBytes = 4 * 1024;
/** Beyond this, the connection is cut: reading on just to be able to reuse it would serve the sender of an endless body. */
const maxReadBytes = 64 * 1024;
/** The same for a body in tiny chunks, each of which costs much more than its bytes. */
const maxReadChunks = 1024;

const nothing = new Uint8Array(0);

export class ResponseBody implements BodyRead {
  ended = false;
  private kept: Uint8Array = nothing;
  private readBytes = 0;
  private readChunks = 0;
  private promise: Promise<void> | undefined;
  private resolve: (() => void) | undefined;

  /** @param cut called when the body is too long: nothing more of it is wanted */
  constructor(private readonly cut: () => void) {}

  received(): Uint8Array {
    return this.readBytes > maxKeptBytes ? wholeCharacters(this.kept) : this.kept;
  }

  get done(): Promise<void> {
    // Made on demand: most bodies have ended before anyone asks.
    this.promise ??= new Promise((resolve) => {
      if (this.ended) resolve();
      else this.resolve = resolve;
    });
    return this.promise;
  }

  /** Also called for a body that was broken off, which it could not learn otherwise. */
  end(): void {
    this.ended = true;
    this.resolve?.();
  }

  /** @param chunk is copied */
  take(chunk: Uint8Array): void {
    if (this.ended) return;
    const room = maxKeptBytes - this.kept.length;
    if (room > 0) this.kept = append(this.kept, chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.readBytes += chunk.length;
    this.readChunks += 1;
    if (this.readBytes <= maxReadBytes && this.readChunks <= maxReadChunks) return;
    this.end();
    this.cut();
  }
}

/** Leaves out the start of a character of UTF-8 at the end. Of other bytes, which are shown as text all the same, three at most. */
function wholeCharacters(bytes: Uint8Array): Uint8Array {
  for (let left = 1; left < 4; left += 1) {
    const byte = bytes[bytes.length - left] ?? 0;
    const isInside = (byte & 0xc0) === 0x80;
    if (!isInside) return characterBytes(byte) > left ? bytes.subarray(0, -left) : bytes;
  }
  return bytes;
}

/** How long a character is, by its first byte. */
function characterBytes(first: number): number {
  if (first < 0xc0 || first > 0xf4) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

/**
 * Copies even a single part: a chunk is a view into a much larger buffer, which it would keep alive. Leaves room after
 * the head for as much again, so that many small parts are not copied each time.
 */
function append(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const length = head.length + tail.length;
  const hasRoom = length <= head.buffer.byteLength;
  const room = hasRoom ? head.buffer : new ArrayBuffer(head.length === 0 ? length : Math.min(2 * length, maxKeptBytes));
  const both = new Uint8Array(room, 0, length);
  if (!hasRoom) both.set(head);
  both.set(tail, head.length);
  return both;
}
