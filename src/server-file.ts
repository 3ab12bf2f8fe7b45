import { join, resolve } from "node:path";
import type { Whereabouts } from "./home.ts";
import { readIfThere } from "./private-files.ts";

/** In the data directory: what the server that runs on it says about itself. */
export const serverFile = "server.json";

/**
 * What the server that runs on this folder said about itself; null when there is none, or a power failure has garbled it.
 * @throws StartupError when it cannot be read
 */
export function readServerFile(folder: string): Whereabouts | null {
  const text = readIfThere(join(resolve(folder), serverFile));
  try {
    return text === null ? null : (JSON.parse(text) as Whereabouts);
  } catch {
    return null;
  }
}
