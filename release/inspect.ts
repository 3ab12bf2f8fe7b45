import { identifierOf, isSigned } from "./macos.ts";
import { namesOf } from "./windows.ts";

/** What an executable says of itself, for systems on which it cannot be run here. */
export interface Inspection {
  /** Shared libraries that it asks for; for Windows, which has what it asks for, none are looked up. */
  readonly libraries: readonly string[];
  /** By which name its system knows it, where there is one in it. */
  readonly name: string | null;
}

/** @throws Error when it is no executable of Linux, macOS or Windows, or one that its system would not load */
export function inspect(bytes: Buffer): Inspection {
  const magic = bytes.readUInt32BE(0);
  if (magic === 0x7f454c46) return { libraries: elfLibraries(bytes), name: null };
  if (magic === 0xcffaedfe) return inspectMachO(bytes);
  if (bytes.toString("latin1", 0, 2) === "MZ") {
    checkSections(bytes);
    return { libraries: [], name: namesOf(bytes).ProductName ?? null };
  }
  throw new Error("This is no executable of Linux, macOS or Windows");
}

const text = (bytes: Buffer, at: number) => bytes.toString("latin1", at, bytes.indexOf(0, at));

/** DT_NEEDED of a 64-bit little-endian file. */
function elfLibraries(bytes: Buffer): string[] {
  const headers = Number(bytes.readBigUInt64LE(32));
  const size = bytes.readUInt16LE(54);
  const segments = Array.from({ length: bytes.readUInt16LE(56) }, (_, i) => {
    const at = headers + i * size;
    const number = (offset: number) => Number(bytes.readBigUInt64LE(at + offset));
    return { type: bytes.readUInt32LE(at), offset: number(8), address: number(16), length: number(32) };
  });
  const dynamic = segments.find(({ type }) => type === 2);
  if (!dynamic) return [];
  const entries = Array.from({ length: dynamic.length / 16 }, (_, i) => ({
    tag: Number(bytes.readBigInt64LE(dynamic.offset + i * 16)),
    value: Number(bytes.readBigUInt64LE(dynamic.offset + i * 16 + 8)),
  }));
  const address = entries.find(({ tag }) => tag === 5)?.value ?? 0;
  const holder = segments.find((one) => one.type === 1 && address >= one.address && address < one.address + one.length);
  const names = address - (holder?.address ?? 0) + (holder?.offset ?? 0);
  return entries
    .filter(({ tag }) => tag === 1)
    .map(({ value }) => text(bytes, names + value))
    .sort();
}

/** LC_LOAD_DYLIB, and the identifier of the code signature, which has to hold. */
function inspectMachO(bytes: Buffer): Inspection {
  const libraries: string[] = [];
  if (!isSigned(bytes)) throw new Error("The executable for macOS is not what its signature says");
  let at = 32;
  for (let i = 0; i < bytes.readUInt32LE(16); i++) {
    const command = bytes.readUInt32LE(at);
    if (command === 0x0c) libraries.push(text(bytes, at + bytes.readUInt32LE(at + 8)));
    at += bytes.readUInt32LE(at + 4);
  }
  return { libraries: libraries.sort(), name: identifierOf(bytes) };
}

/** Windows loads nothing whose sections do not follow each other without a gap, and Linux would not tell. */
function checkSections(bytes: Buffer): void {
  const header = bytes.readUInt32LE(60) + 4;
  const optional = header + 20;
  const page = bytes.readUInt32LE(optional + 32);
  const table = optional + bytes.readUInt16LE(header + 16);
  let next = bytes.readUInt32LE(table + 12);
  for (let i = 0; i < bytes.readUInt16LE(header + 2); i++) {
    const section = table + i * 40;
    const address = bytes.readUInt32LE(section + 12);
    if (address !== next) throw new Error(`Section ${i + 1} is at ${address}, and the one before it ends at ${next}`);
    next = address + Math.ceil(bytes.readUInt32LE(section + 8) / page) * page;
  }
  const size = bytes.readUInt32LE(optional + 56);
  if (size !== next) throw new Error(`The image has ${size} bytes, and its sections end at ${next}`);
}
