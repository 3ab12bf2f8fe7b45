import { join } from "node:path";

/** Names the executable to test; without it the program runs from its sources. */
export const executableVariable = "EXECUTABLE_UNDER_TEST";

const named = process.env[executableVariable];

/** The program as a command line, to which its words are added. */
export const program: readonly string[] = named
  ? [named]
  : [process.execPath, join(import.meta.dir, "../../../src/main.ts")];
