import { createHash } from "node:crypto";
import { formatIso } from "../lib/iso-time.ts";
import type { Snapshot } from "../store/backup/snapshot.ts";
import { commit, version } from "../version.ts";
import { type Manifest, manifestFile, sumsFile } from "./manifest.ts";
import { type TarEntry, writeTar } from "./tar.ts";

/** A small file stored alongside the database. */
export interface PrivateFile {
  readonly name: string;
  readonly contents: Uint8Array;
}

/** The name of the database within a backup, whatever it is called where it comes from. */
export const databaseEntry = "postrider.db";

export interface ArchiveOptions {
  snapshot: Snapshot;
  secrets: readonly PrivateFile[];
  hasMasterKey: boolean;
  now: number;
  onProgress?(progress: { done: number; total: number }): void;
}

/**
 * The contents of a backup as bytes, ready to be compressed: manifest, secrets, database, checksums. Each chunk is valid only
 * until the next one is requested.
 */
export function createArchive({ snapshot, secrets, hasMasterKey, now, onProgress }: ArchiveOptions): {
  manifest: Manifest;
  chunks(): Generator<Uint8Array>;
} {
  const manifest: Manifest = {
    format: 1,
    version,
    commit,
    schema: snapshot.schema,
    createdAt: formatIso(now),
    databaseBytes: snapshot.bytes,
    hasMasterKey,
    books: snapshot.books(),
  };
  const sums: string[] = [];

  function hashed({ name, bytes, chunks }: TarEntry): TarEntry {
    return {
      name,
      bytes,
      *chunks() {
        const hash = createHash("sha256");
        for (const chunk of chunks()) {
          hash.update(chunk);
          yield chunk;
        }
        sums.push(`${hash.digest("hex")}  ${name}\n`);
      },
    };
  }

  function* database(): Generator<Uint8Array> {
    let done = 0;
    for (const chunk of snapshot.chunks()) {
      yield chunk;
      done += chunk.length;
      onProgress?.({ done, total: snapshot.bytes });
    }
  }

  function* entries(): Generator<TarEntry> {
    yield hashed(entryOf(manifestFile, Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)));
    for (const { name, contents } of secrets) yield hashed(entryOf(name, contents));
    yield hashed({ name: databaseEntry, bytes: snapshot.bytes, chunks: database });
    yield entryOf(sumsFile, Buffer.from(sums.join("")));
  }

  return { manifest, chunks: () => writeTar(entries(), Math.floor(now / 1000)) };
}

const entryOf = (name: string, contents: Uint8Array): TarEntry => ({
  name,
  bytes: contents.length,
  chunks: () => [contents],
});
