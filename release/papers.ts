import { readFileSync } from "node:fs";
import { join } from "node:path";
import { commands } from "../src/cli/commands.ts";
import { bashScript } from "../src/cli/completion/bash.ts";
import { completableOf } from "../src/cli/completion/completable.ts";
import { fishScript } from "../src/cli/completion/fish.ts";
import { zshScript } from "../src/cli/completion/zsh.ts";
import { root } from "./lock.ts";
import { writeManual } from "./man.ts";
import type { Origin } from "./origin.ts";

/** What belongs to an executable on a machine: licences, manual page, and what shells complete. */
export interface Papers {
  readonly licences: Buffer;
  readonly manual: Buffer;
  readonly bash: Buffer;
  readonly zsh: Buffer;
  readonly fish: Buffer;
}

/**
 * From the commands themselves, as `postrider help` and `postrider completion` have them.
 * @param licences of all that is in the executable
 */
export function writePapers({ committedAt }: Pick<Origin, "committedAt">, licences: Buffer): Papers {
  const completable = completableOf(commands);
  const file = (text: string) => Buffer.from(text.endsWith("\n") ? text : `${text}\n`);
  return {
    licences,
    manual: file(writeManual(commands, committedAt === "unknown" ? "" : committedAt.slice(0, 10))),
    bash: file(bashScript(completable)),
    zsh: file(zshScript(completable)),
    fish: file(fishScript(completable)),
  };
}

/** A file of the repository. */
export const ownFile = (name: string): Buffer => readFileSync(join(root, name));
