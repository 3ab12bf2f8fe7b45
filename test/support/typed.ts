import { runCommand } from "../../src/cli/run.ts";
import { createScriptedIo, type Script } from "./scripted-io.ts";
import type { TestAccount } from "./test-app.ts";

/** A command line typed on a machine where an account is signed in, run in this process. */
export function type(url: string, { jwt }: Pick<TestAccount, "jwt">, argv: readonly string[], script: Script = {}) {
  const env = { POSTRIDER_URL: url, POSTRIDER_TOKEN: jwt, ...script.env };
  const { io, out, err, progress, questions, interrupt, when } = createScriptedIo({ ...script, env });
  const ended = runCommand(argv, io);
  return { out, err, progress, questions, interrupt, when, ended };
}
