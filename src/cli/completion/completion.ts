import { UsageError } from "../../domain/errors.ts";
import { nearest } from "../../lib/nearest.ts";
import type { Command } from "../command.ts";
import { exitCode } from "../io.ts";
import { bashScript } from "./bash.ts";
import { completableOf } from "./completable.ts";
import { fishScript } from "./fish.ts";
import { zshScript } from "./zsh.ts";

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };
const shells = Object.keys(scripts);

/** Shell completion, generated from what the command-line parser itself reads. */
export function createCompletionCommand(all: () => readonly Command[]): Command {
  return {
    words: ["completion"],
    operands: ["SHELL"],
    operandChoices: { SHELL: shells },
    flags: [],
    summary: "Print a script that completes command lines in bash, zsh or fish",
    details: `A line for this session; put it into the file beside it for every session:
bash   source <(postrider completion bash)    ~/.bashrc
zsh    source <(postrider completion zsh)     ~/.zshrc, after compinit
fish   postrider completion fish | source     ~/.config/fish/config.fish
It knows commands, flags, and values where there is a choice. It asks no server.`,
    async run({ operands: [shell = ""] }, io) {
      const write = scripts[shell as keyof typeof scripts];
      if (!shells.includes(shell)) {
        throw new UsageError(
          `There is no completion for "${shell}". Try: postrider completion ${nearest(shell, shells) ?? shells.join("|")}`,
        );
      }
      io.out(write(completableOf(all())));
      return exitCode.ok;
    },
  };
}
