import type { S3Access } from "../backup-settings.ts";
import { StartupError } from "../domain/errors.ts";
import { codeOf, messageOf, oneLine } from "../lib/error-message.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { type Staging, stage } from "./folder.ts";
import { type Location, newestFirst, type Place, type StoredBackup, timeInName } from "./place.ts";

/** Size of an upload part; two are in memory at a time. An upload may have up to 10,000 parts. */
const partBytes = 8 * 2 ** 20;
const mostParts = 9_000;
const partsAtOnce = 2;
const retries = 3;
/**
 * The local file in which a backup is staged before the upload. A bucket is slower than a disk, and a snapshot kept open that
 * long would keep the log growing.
 */
const stagedName = "upload";

/**
 * `s3://bucket/prefix`, or the key of a single backup below it.
 * @param staging where a backup is staged before it is uploaded
 * @throws StartupError without access
 */
export function locateInBucket(text: string, access: S3Access | null, staging: Staging): Location {
  if (access === null) {
    throw new StartupError(
      `${text} needs a key. Try: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_ENDPOINT_URL_S3 unless it is Amazon's.`,
    );
  }
  const [, bucket = "", path = ""] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(text) ?? [];
  const isOne = /\.tar\.zst(?:\.age)?$/.test(path);
  const cut = path.lastIndexOf("/") + 1;
  const prefix = isOne ? path.slice(0, cut) : path === "" || path.endsWith("/") ? path : `${path}/`;
  return { place: createBucket(bucket, prefix, access, staging), name: isOne ? path.slice(cut) : null };
}

function createBucket(bucket: string, prefix: string, access: S3Access, staging: Staging): Place {
  const { accessKeyId, secretAccessKey, sessionToken, region, endpoint } = access;
  const client = new Bun.S3Client({
    bucket,
    accessKeyId,
    secretAccessKey,
    region,
    ...(sessionToken !== null && { sessionToken }),
    ...(endpoint !== null && { endpoint }),
  });
  const name = `s3://${bucket}/${prefix}`;

  async function explained<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw failure(error, what, endpoint);
    }
  }

  /** The object appears only once its last part is uploaded: an upload that fails earlier leaves nothing visible. */
  async function upload(key: string, file: string, bytes: number, signal: AbortSignal): Promise<void> {
    const partSize = Math.max(partBytes, Math.ceil(bytes / mostParts));
    const writer = client.file(key).writer({ partSize, queueSize: partsAtOnce, retry: retries });
    for await (const chunk of Bun.file(file).stream()) {
      signal.throwIfAborted();
      await writer.write(chunk);
      await writer.flush();
    }
    await writer.end();
    const { size } = await client.file(key).stat();
    if (size !== bytes) throw new Error(`it has ${size} bytes there, and ${bytes} here`);
  }

  return {
    name,
    folder: null,

    async put(file, source, signal) {
      const staged = await stage({ ...staging, name: stagedName }, source);
      try {
        // A store that does not answer would keep the process, and whoever waits for it, for minutes.
        await untilAborted(signal, () =>
          explained(`${name}${file}`, () => upload(prefix + file, staged.path, staged.bytes, signal)),
        );
        return staged.bytes;
      } finally {
        await staged.remove();
      }
    },

    async list(now) {
      const found: StoredBackup[] = [];
      let continuationToken: string | undefined;
      do {
        const from = continuationToken === undefined ? {} : { continuationToken };
        const page = await explained(name, () => client.list({ prefix, ...from }));
        for (const { key, size = 0 } of page.contents ?? []) {
          const file = key.slice(prefix.length);
          const createdAt = timeInName(file);
          if (createdAt !== null) found.push({ name: file, bytes: size, createdAt });
        }
        continuationToken = page.isTruncated ? page.nextContinuationToken : undefined;
      } while (continuationToken !== undefined);
      return newestFirst(found, now);
    },

    async *read(file) {
      try {
        yield* client.file(prefix + file).stream();
      } catch (error) {
        throw failure(error, `${name}${file}`, endpoint);
      }
    },

    remove: (file) => explained(`${name}${file}`, () => client.file(prefix + file).delete()),
  };
}

/**
 * Worded by error code, because S3's own messages are not written for this audience. Of a gateway, a whole page may be all that
 * came.
 */
function failure(error: unknown, what: string, endpoint: string | null): unknown {
  const code = codeOf(error);
  if (error instanceof StartupError) return error;
  const remedies: Readonly<Record<string, string>> = {
    NoSuchKey: "there is no such backup. Try: the folder above it, whose newest one is then meant",
    NoSuchBucket: "there is no such bucket. Try: make it, or check its name",
    InvalidAccessKeyId: "the key is not known there. Try: check AWS_ACCESS_KEY_ID",
    SignatureDoesNotMatch: "the key is wrong. Try: check AWS_SECRET_ACCESS_KEY",
    AccessDenied: "the key may not do that. Try: allow it to list, read, write and delete below the prefix",
    ConnectionRefused: `${endpoint ?? "Amazon S3"} cannot be reached. Try: check AWS_ENDPOINT_URL_S3 and the network`,
  };
  const said =
    remedies[code] ?? `${oneLine(messageOf(error))}${code === "" ? "" : ` (${code})`}. Try: again, or check the store`;
  return new StartupError(`${what}: ${said}.`);
}
