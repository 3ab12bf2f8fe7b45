import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { inspect } from "../../release/inspect.ts";
import { identifierOf, isSigned, withIdentifier } from "../../release/macos.ts";

/** A file of the form that the compiler writes: two pages, of which the last is short, and a signature behind them. */
function createExecutable(): Buffer {
  const contents = Buffer.alloc(5000, 7);
  contents.writeUInt32BE(0xcffaedfe, 0);
  contents.writeUInt32LE(2, 16);
  const segment = contents.subarray(32);
  segment.fill(0, 0, 72);
  segment.writeUInt32LE(0x19, 0);
  segment.writeUInt32LE(72, 4);
  segment.write("__LINKEDIT", 8);
  segment.writeBigUInt64LE(16384n, 32);
  const command = contents.subarray(104);
  command.fill(0, 0, 16);
  command.writeUInt32LE(0x1d, 0);
  command.writeUInt32LE(16, 4);
  command.writeUInt32LE(contents.length, 8);

  const identifier = "a.out\0";
  const directory = Buffer.alloc(88);
  const hashesAt = directory.length + identifier.length;
  directory.writeUInt32BE(0xfade0c02, 0);
  directory.writeUInt32BE(hashesAt + 64, 4);
  directory.writeUInt32BE(hashesAt, 16);
  directory.writeUInt32BE(directory.length, 20);
  directory.writeUInt32BE(2, 28);
  directory.writeUInt32BE(contents.length, 32);
  directory.set([32, 2, 0, 12], 36);
  const blob = Buffer.alloc(20);
  blob.writeUInt32BE(0xfade0cc0, 0);
  blob.writeUInt32BE(20 + hashesAt + 64, 4);
  blob.writeUInt32BE(1, 8);
  blob.writeUInt32BE(20, 16);
  command.writeUInt32LE(blob.readUInt32BE(4), 12);
  segment.writeBigUInt64LE(BigInt(blob.readUInt32BE(4)), 48);
  const hash = (from: number, to: number) => createHash("sha256").update(contents.subarray(from, to)).digest();
  return Buffer.concat([contents, blob, directory, Buffer.from(identifier), hash(0, 4096), hash(4096, 5000)]);
}

test("an executable for macOS gets our name, and a signature that holds", () => {
  const compiled = createExecutable();
  expect({ name: identifierOf(compiled), holds: isSigned(compiled) }).toEqual({ name: "a.out", holds: true });
  const named = withIdentifier(compiled, "postrider");
  expect({ name: identifierOf(named), holds: isSigned(named) }).toEqual({ name: "postrider", holds: true });
  expect(named.length).toBe(compiled.length + 4);
  expect(inspect(named)).toEqual({ libraries: [], name: "postrider" });
});

test("one whose pages are not what its signature says is refused", () => {
  const changed = createExecutable();
  changed[4500] = 8;
  expect(isSigned(changed)).toBe(false);
  expect(() => withIdentifier(changed, "postrider")).toThrow("is not what its signature says");
  expect(() => inspect(changed)).toThrow("is not what its signature says");
});
