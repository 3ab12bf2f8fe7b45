/** A file of an archive. What it does not say (owner, time) is the same for all, so that equal content makes equal bytes. */
export interface Entry {
  /** With slashes; a folder's ends with one. */
  readonly path: string;
  readonly bytes: Uint8Array;
  /** @default 0o644, and 0o755 for a folder */
  readonly mode?: number;
}

const block = 512;

/** An archive in the ustar form, which every tar reads: root's files, all of one time. */
export function writeTar(entries: readonly Entry[], modifiedAt: Date): Uint8Array {
  const parts = entries.flatMap((entry) => [header(entry, modifiedAt), entry.bytes, padding(entry.bytes.length)]);
  return Buffer.concat([...parts, new Uint8Array(2 * block)]);
}

const padding = (length: number) => new Uint8Array((block - (length % block)) % block);

function header({ path, bytes, mode }: Entry, modifiedAt: Date): Uint8Array {
  const isFolder = path.endsWith("/");
  const header = Buffer.alloc(block);
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, "0")}\0`;
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} is longer than the 100 bytes that ustar has for a name`);
  header.write(path, 0);
  header.write(octal(mode ?? (isFolder ? 0o755 : 0o644), 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(bytes.length, 12), 124);
  header.write(octal(Math.floor(modifiedAt.getTime() / 1000), 12), 136);
  // The sum is taken with spaces in its own place.
  header.write(" ".repeat(8), 148);
  header.write(isFolder ? "5" : "0", 156);
  header.write("ustar\x0000", 257, "latin1");
  header.write("root", 265);
  header.write("root", 297);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

/** The folders above the entries, each before what is in it. */
export function withFolders(entries: readonly Entry[], top = ""): Entry[] {
  const folders = new Set(
    entries.flatMap(({ path }) => {
      const parts = path.slice(top.length).split("/").slice(0, -1);
      return parts.map((_, i) => `${top}${parts.slice(0, i + 1).join("/")}/`);
    }),
  );
  const made = [...folders].map((path) => ({ path, bytes: new Uint8Array() }));
  return [...made, ...entries].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}
