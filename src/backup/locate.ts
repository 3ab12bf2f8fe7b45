import { locateFolder } from "./folder.ts";
import type { Location } from "./place.ts";

/** `TO` and `FROM` of the commands: a file, a folder or `s3://bucket/prefix`. */
export function locate(text: string): Location {
  return locateFolder(text);
}
