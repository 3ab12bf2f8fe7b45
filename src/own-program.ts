import { join } from "node:path";

/** In the executable all modules lie in a file system of its own. */
const isCompiled = /\$bunfs|~BUN/.test(import.meta.dir);

/** This very program as a command line, to be started once more: the executable, or the runtime with the sources. */
export const ownProgram: readonly string[] = isCompiled
  ? [process.execPath]
  : [process.execPath, join(import.meta.dir, "main.ts")];
