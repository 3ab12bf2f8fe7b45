import { UsageError } from "../domain/errors.ts";

/** An empty segment, and "." and "..", which every URL parser resolves however they are encoded: they name another path. */
const notSegments: readonly string[] = ["", ".", ".."];

/**
 * An id as typed, as a segment of a path.
 * @param remedy the command that lists the ids
 * @throws UsageError when the path would be another one
 */
export function idInPath(id: string, remedy: string): string {
  if (notSegments.includes(id)) throw new UsageError(`"${id}" is not an id. Try: ${remedy}`);
  return encodeURIComponent(id);
}
