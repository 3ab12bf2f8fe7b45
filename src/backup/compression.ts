import { Readable } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import { codeOf } from "../lib/error-message.ts";

/** Each is a separate zstd frame; every program that reads zstd reads consecutive frames one after the other. */
const frameBytes = 2 ** 20;
/** The garbage collector does not see how much memory the frames hold behind their small objects. */
const framesBetweenCollections = 16;
/** Size of one decompressed chunk; larger would not be faster. */
const plainBytes = 2 ** 18;
/** Level 3 is zstd's default: 5 times slower here, and a tenth smaller. */
const level = 1;

const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
/** Goes by the first bytes, whatever the file is called. */
export const isCompressed = (start: Uint8Array): boolean => magic.equals(start.subarray(0, magic.length));

/** Holds one frame at a time and compresses it on this thread, so that the process's niceness applies to all of the work. */
export async function* compress(
  chunks: Iterable<Uint8Array>,
  /** Awaited after each frame. */
  rest: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const frame = new Uint8Array(frameBytes);
  let filled = 0;
  let frames = 0;
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + frameBytes - filled);
      frame.set(part, filled);
      filled += part.length;
      at += part.length;
      if (filled < frameBytes) continue;
      yield Bun.zstdCompressSync(frame, { level });
      filled = 0;
      frames += 1;
      if (frames % framesBetweenCollections === 0) Bun.gc(true);
      await rest();
    }
  }
  if (filled > 0) yield Bun.zstdCompressSync(frame.subarray(0, filled), { level });
}

/** @throws Error when the data is damaged; not when it is cut short, which the reader of the contents detects */
export async function* decompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const compressed = Readable.from(source, { objectMode: false });
  const plain = createZstdDecompress({ chunkSize: plainBytes });
  compressed.on("error", (error) => plain.destroy(error));
  try {
    yield* compressed.pipe(plain) as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw inWords(error);
  }
}

/** Rewords errors that the library states in terms of its format. Errors from the source are passed on unchanged. */
function inWords(error: unknown): unknown {
  const code = codeOf(error);
  if (!code.startsWith("ZSTD_")) return error;
  const isOther = code === "ZSTD_error_prefix_unknown";
  return new Error(isOther ? "postrider backup did not write it" : "it is damaged", { cause: error });
}
