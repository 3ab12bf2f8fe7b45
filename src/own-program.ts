import { join } from "node:path";

/** In the executable, all modules are in a virtual file system. */
const isCompiled = /\$bunfs|~BUN/.test(import.meta.dir);

/** This same program as a command line, to be started again: the executable, or the runtime with the sources. */
export const ownProgram: readonly string[] = isCompiled
  ? [process.execPath]
  : [process.execPath, join(import.meta.dir, "main.ts")];
