import { promisify } from "node:util";
import { crc32, deflateRaw } from "node:zlib";
import type { Entry } from "./tar.ts";

const deflate = promisify(deflateRaw);
/** 2.0: folders and deflate; made on Unix, so that modes are kept. */
const needed = 20;
const madeOn = (3 << 8) | needed;

/** A zip archive (APPNOTE 6.3), for Windows: no more than 4 GiB, names in ASCII, all of one time. */
export async function writeZip(entries: readonly Entry[], modifiedAt: Date): Promise<Uint8Array> {
  const files: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const { path, bytes, mode = 0o644 } of entries) {
    const packed = await deflate(bytes, { level: 9 });
    const name = Buffer.from(path, "ascii");
    const common = Buffer.alloc(26);
    common.writeUInt16LE(needed, 0);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(dosTime(modifiedAt), 6);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), common, name, packed]);
    const where = Buffer.alloc(14);
    where.writeUInt32LE(((0o100000 | mode) << 16) >>> 0, 6);
    where.writeUInt32LE(offset, 10);
    const by = Buffer.alloc(2);
    by.writeUInt16LE(madeOn);
    directory.push(Buffer.from("PK\x01\x02", "latin1"), by, common, where, name);
    files.push(local);
    offset += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...files, listed, end]);
}

/** Date and time as DOS has them, in UTC, by two seconds. */
function dosTime(at: Date): number {
  const date = ((at.getUTCFullYear() - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate();
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  return ((date << 16) | time) >>> 0;
}
