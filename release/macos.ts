import { createHash } from "node:crypto";

/**
 * The code signature of an executable for macOS, as far as a build on another system makes it: ad hoc, which says that nothing has
 * changed, and not who made it. An authority's signature and the notary's word need Apple's program and an account there.
 * Layout: Apple's cs_blobs.h; all numbers of a signature are big-endian, those of the file little-endian.
 */

const segmentCommand = 0x19;
const signatureCommand = 0x1d;
const directoryMagic = 0xfade0c02;
const pageSize = 4096;
const hashSize = 32;

interface Signature {
  /** Where its load command is, and the one of the last segment, which holds it. */
  readonly command: number;
  readonly segment: number;
  /** Where it is, and in it the directory of hashes, the identifier and the hash of the first page. */
  readonly at: number;
  readonly directory: number;
  readonly identifier: number;
  readonly hashes: number;
  readonly pages: number;
}

/** @throws Error when it is not of the one form that the compiler writes */
function findSignature(bytes: Buffer): Signature {
  let command = 0;
  let segment = 0;
  let next = 32;
  for (let i = 0; i < bytes.readUInt32LE(16); i++) {
    const kind = bytes.readUInt32LE(next);
    if (kind === segmentCommand && textAt(bytes, next + 8) === "__LINKEDIT") segment = next;
    if (kind === signatureCommand) command = next;
    next += bytes.readUInt32LE(next + 4);
  }
  if (command === 0 || segment === 0) throw new Error("The executable for macOS has no signature");
  const at = bytes.readUInt32LE(command + 8);
  const directory = at + 20;
  const isKnown =
    bytes.readUInt32BE(at + 8) === 1 &&
    bytes.readUInt32BE(at + 16) === 20 &&
    bytes.readUInt32BE(directory) === directoryMagic &&
    // No hashes but those of pages, by SHA-256, of all that is before the signature, which ends the file.
    bytes.readUInt32BE(directory + 24) === 0 &&
    bytes.readUInt32BE(directory + 32) === at &&
    bytes.readUInt32BE(directory + 36) >>> 16 === (hashSize << 8) + 2 &&
    bytes[directory + 39] === Math.log2(pageSize) &&
    at + bytes.readUInt32LE(command + 12) === bytes.length;
  if (!isKnown) throw new Error("The executable for macOS has a signature of another form than the compiler's");
  return {
    command,
    segment,
    at,
    directory,
    identifier: directory + bytes.readUInt32BE(directory + 20),
    hashes: directory + bytes.readUInt32BE(directory + 16),
    pages: bytes.readUInt32BE(directory + 28),
  };
}

const textAt = (bytes: Buffer, at: number) => bytes.toString("latin1", at, bytes.indexOf(0, at));

export const identifierOf = (bytes: Buffer): string => textAt(bytes, findSignature(bytes).identifier);

/** Whether each page is what the signature says; macOS ends a program that comes to one that is not. */
export function isSigned(bytes: Buffer): boolean {
  const { at, hashes, pages } = findSignature(bytes);
  return hashesOf(bytes, at).equals(bytes.subarray(hashes, hashes + pages * hashSize));
}

function hashesOf(bytes: Buffer, end: number): Buffer {
  const hashes: Buffer[] = [];
  for (let at = 0; at < end; at += pageSize) {
    hashes.push(
      createHash("sha256")
        .update(bytes.subarray(at, Math.min(at + pageSize, end)))
        .digest(),
    );
  }
  return Buffer.concat(hashes);
}

/** The same executable under another identifier, which the compiler calls `a.out`, and signed as that. */
export function withIdentifier(bytes: Buffer, name: string): Buffer {
  if (!isSigned(bytes)) throw new Error("The executable for macOS is not what its signature says");
  const { command, segment, at, directory, identifier, hashes } = findSignature(bytes);
  const added = name.length - textAt(bytes, identifier).length;
  const named = Buffer.concat([
    bytes.subarray(0, identifier),
    Buffer.from(`${name}\0`),
    bytes.subarray(bytes.indexOf(0, identifier) + 1),
  ]);
  const lengthenLE = (where: number) => named.writeUInt32LE(named.readUInt32LE(where) + added, where);
  const lengthenBE = (where: number) => named.writeUInt32BE(named.readUInt32BE(where) + added, where);
  lengthenLE(command + 12);
  named.writeBigUInt64LE(named.readBigUInt64LE(segment + 48) + BigInt(added), segment + 48);
  if (named.readBigUInt64LE(segment + 48) > named.readBigUInt64LE(segment + 32)) {
    throw new Error("The signature does not fit into the last segment's memory");
  }
  lengthenBE(at + 4);
  lengthenBE(directory + 4);
  lengthenBE(directory + 16);
  hashesOf(named, at).copy(named, hashes + added);
  return named;
}
