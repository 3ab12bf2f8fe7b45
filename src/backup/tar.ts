/** Archives in the tar format (POSIX.1-1988, ustar; sizes of 8 GiB and more are written the way GNU and POSIX programs do). */

const blockBytes = 512;
const end = new Uint8Array(2 * blockBytes);
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export interface TarEntry {
  /** At most 100 ASCII characters. */
  readonly name: string;
  readonly bytes: number;
  /** Yields exactly `bytes` bytes. */
  chunks(): Iterable<Uint8Array>;
}

/** In seconds since the Unix epoch. */
type Time = number;

/** Each chunk is valid only until the next one is requested. */
export function* writeTar(entries: Iterable<TarEntry>, at: Time): Generator<Uint8Array> {
  for (const { name, bytes, chunks } of entries) {
    yield headOf(name, bytes, at);
    yield* chunks();
    const left = bytes % blockBytes;
    if (left > 0) yield end.subarray(0, blockBytes - left);
  }
  yield end;
}

const nameField = { at: 0, length: 100 };
const sizeField = { at: 124, length: 12 };
const sumField = { at: 148, length: 8 };
/** The smallest size that needs more than eleven octal digits. */
const firstLarge = 8 ** 11;

function headOf(name: string, bytes: number, at: Time): Uint8Array {
  const head = new Uint8Array(blockBytes);
  const write = (text: string, position: number) => head.set(encoder.encode(text), position);
  const octal = (value: number, length: number) => value.toString(8).padStart(length - 1, "0");
  write(name, nameField.at);
  write(octal(0o600, 8), 100);
  write(octal(0, 8), 108);
  write(octal(0, 8), 116);
  if (bytes < firstLarge) write(octal(bytes, 12), sizeField.at);
  else {
    new DataView(head.buffer).setBigUint64(sizeField.at + 4, BigInt(bytes));
    head[sizeField.at] = 0x80;
  }
  write(octal(at, 12), 136);
  write(" ".repeat(sumField.length), sumField.at);
  write("0", 156);
  write("ustar", 257);
  write("00", 263);
  write(`${octal(sumOf(head), 7)}\0 `, sumField.at);
  return head;
}

const sumOf = (head: Uint8Array): number => head.reduce((sum, byte) => sum + byte, 0);

/** Receives the entries of an archive as they are read. A chunk is valid only until `take` returns. */
export interface TarTaker {
  begin(name: string, bytes: number): void;
  take(chunk: Uint8Array): void;
  end(): void;
}

/**
 * Reads an archive to its end.
 * @throws Error when it is not an archive, or is cut short
 */
export async function readTar(source: AsyncIterable<Uint8Array>, taker: TarTaker): Promise<void> {
  const head = new Uint8Array(blockBytes);
  let headFilled = 0;
  /** Bytes left of the current entry, and of the padding that fills its last block. */
  let left = 0;
  let padding = 0;
  let hasEnded = false;

  function takeHead(): void {
    headFilled = 0;
    if (head.every((byte) => byte === 0)) {
      hasEnded = true;
      return;
    }
    const { name, bytes } = readHead(head);
    left = bytes;
    padding = (blockBytes - (bytes % blockBytes)) % blockBytes;
    taker.begin(name, bytes);
    if (left === 0) taker.end();
  }

  for await (const chunk of source) {
    let at = 0;
    while (at < chunk.length && !hasEnded) {
      if (left > 0) {
        const part = chunk.subarray(at, at + left);
        taker.take(part);
        at += part.length;
        left -= part.length;
        if (left === 0) taker.end();
      } else if (padding > 0) {
        const skipped = Math.min(padding, chunk.length - at);
        padding -= skipped;
        at += skipped;
      } else {
        const part = chunk.subarray(at, at + blockBytes - headFilled);
        head.set(part, headFilled);
        headFilled += part.length;
        at += part.length;
        if (headFilled === blockBytes) takeHead();
      }
    }
  }
  if (!hasEnded) throw new Error("it is cut short");
}

function readHead(head: Uint8Array): { name: string; bytes: number } {
  const text = ({ at, length }: { at: number; length: number }) =>
    decoder.decode(head.subarray(at, at + length)).replace(/\0.*$/s, "");
  const blank = head.slice();
  blank.fill(0x20, sumField.at, sumField.at + sumField.length);
  if (Number.parseInt(text(sumField), 8) !== sumOf(blank)) throw new Error("it is no tar archive, or is damaged");
  const isLarge = (head[sizeField.at] ?? 0) >= 0x80;
  const view = new DataView(head.buffer, head.byteOffset);
  const bytes = isLarge ? Number(view.getBigUint64(sizeField.at + 4)) : Number.parseInt(text(sizeField), 8);
  if (!Number.isSafeInteger(bytes) || bytes < 0) throw new Error("it is no tar archive, or is damaged");
  return { name: text(nameField), bytes };
}
