import { isBucketUrl, type S3Access } from "../backup-settings.ts";
import { UsageError } from "../domain/errors.ts";
import { locateInBucket } from "./bucket.ts";
import { locateFolder } from "./folder.ts";
import type { Location } from "./place.ts";

export interface Surroundings {
  readonly s3: S3Access | null;
  /** Folder in which a backup bound for elsewhere is staged. */
  readonly staging: string;
  /** How much must stay free on a disk that is written to. */
  readonly leaveFreeBytes: number;
}

/** The commands' `TO` and `FROM`: a file, a folder or `s3://bucket/prefix`. @throws UsageError when it is none of these */
export function locate(text: string, { s3, staging, leaveFreeBytes }: Surroundings): Location {
  if (!text.startsWith("s3:")) return locateFolder(text, leaveFreeBytes);
  if (isBucketUrl(text)) return locateInBucket(text, s3, { folder: staging, leaveFreeBytes });
  throw new UsageError(`"${text}" is not an address of S3. Try: s3://bucket/prefix`);
}
