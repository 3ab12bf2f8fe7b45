import { isBucketUrl, type S3Access } from "../backup-settings.ts";
import { StartupError } from "../domain/errors.ts";
import { locateInBucket } from "./bucket.ts";
import { locateFolder } from "./folder.ts";
import type { Location } from "./place.ts";

export interface Surroundings {
  readonly s3: S3Access | null;
  /** Folder for what is on its way to somewhere else. */
  readonly staging: string;
  /** Of a disk that is written to, so much stays free. */
  readonly leaveFreeBytes: number;
}

/** `TO` and `FROM` of the commands: a file, a folder or `s3://bucket/prefix`. @throws StartupError when it is none */
export function locate(text: string, { s3, staging, leaveFreeBytes }: Surroundings): Location {
  if (!text.startsWith("s3:")) return locateFolder(text, leaveFreeBytes);
  if (isBucketUrl(text)) return locateInBucket(text, s3, { folder: staging, leaveFreeBytes });
  throw new StartupError(`"${text}" is not an address of S3. Try: s3://bucket/prefix`);
}
