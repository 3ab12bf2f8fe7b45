import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripANSI } from "bun";

/** Shells as people use them: what they offer for an incomplete line. */

export type Shell = "bash" | "zsh" | "fish";

/** Whether this machine has it; on a Mac, bash is the 2007 version that people there have. */
export const isInstalled = (shell: Shell): boolean => process.platform !== "win32" && Bun.which(shell) !== null;

/** Printed after every listing, so that it is known to be complete. */
const marker = "LINE-IS";

/** Typed before anything else. Lists appear in full at the first tab, and Ctrl+G reports the current line. */
const setUp = {
  bash: `bind 'set show-all-if-ambiguous on'; bind 'set page-completions off'; bind 'set completion-query-items 0'; bind 'set enable-bracketed-paste off'; bind -x '"\\C-g":printf "${marker}<%s>" "$READLINE_LINE"'`,
  zsh: `autoload -Uz compinit; compinit -D -u; LISTMAX=0; setopt nolistbeep nolistambiguous; unsetopt zle_bracketed_paste; tell() { print -rn -- "${marker}<$BUFFER>" }; zle -N tell; bindkey '^G' tell`,
} as const;

const commands = {
  bash: ["bash", "--norc", "--noprofile", "-i"],
  zsh: ["zsh", "-f", "-i"],
} as const;

/** @returns the words that the shell lists or completes when the tab key is pressed after `line` */
export async function complete(shell: Shell, script: string, line: string): Promise<readonly string[]> {
  const file = join(tmpdir(), `postrider-completion-${crypto.randomUUID()}`);
  writeFileSync(file, script);
  try {
    return shell === "fish" ? askFish(file, line) : await pressTab(shell, file, line);
  } finally {
    rmSync(file);
  }
}

/** Uses fish's completion engine, without a terminal: one line per candidate, followed by its description. */
function askFish(file: string, line: string): readonly string[] {
  const program = `source ${file}; complete -C '${line.replaceAll("'", "\\'")}'`;
  const { stdout, stderr } = Bun.spawnSync(["fish", "--no-config", "-c", program]);
  return `${stdout}${stderr}`.split("\n").map((each) => lastWordOf(each.split("\t")[0] ?? ""));
}

async function pressTab(shell: "bash" | "zsh", file: string, line: string): Promise<readonly string[]> {
  let shown = "";
  let look = () => {};
  const decoder = new TextDecoder();
  const child = Bun.spawn([...commands[shell]], {
    env: { PATH: process.env.PATH, TERM: "dumb", PS1: "> ", HOME: tmpdir() },
    cwd: tmpdir(),
    terminal: {
      cols: 400,
      rows: 100,
      data(_terminal, chunk) {
        shown += decoder.decode(chunk, { stream: true });
        look();
      },
    },
  });
  const when = (text: string, from: number) =>
    new Promise<void>((resolve) => {
      look = () => {
        if (shown.indexOf(text, from) >= 0) resolve();
      };
      look();
    });
  const { terminal } = child;
  // Two words that become one only when printed, not when echoed as typed.
  terminal?.write(`${setUp[shell]}; source ${file}; echo rea''dy\r`);
  await when("ready", 0);
  const from = shown.indexOf("ready") + "ready".length;
  terminal?.write(`${line}\t\u0007`);
  await when(`${marker}<`, from);
  await when(">", shown.indexOf(marker, from));
  child.kill("SIGKILL");
  await child.exited;
  const [listed = "", rest = ""] = stripANSI(shown.slice(from)).split(`${marker}<`);
  const onLine = rest.split(">")[0] ?? "";
  return [...listed.replaceAll(line, "").split(/\s+/), ...(onLine === line ? [] : [lastWordOf(onLine)])];
}

/** A value written together with its flag counts as a word of its own. */
const lastWordOf = (line: string): string => line.trim().replace(/=$/, "").split(/[\s=]/).at(-1) ?? "";
