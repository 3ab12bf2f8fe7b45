import { describe, expect, test } from "bun:test";
import { commands } from "../../src/cli/commands.ts";
import { runCommand } from "../../src/cli/run.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { complete, isInstalled, type Shell } from "../support/shells.ts";

async function run(line: string) {
  const { io, out, err } = createScriptedIo();
  return { code: await runCommand(line.split(" "), io), out: out.join("\n"), err: err.join("\n") };
}

const shells: readonly Shell[] = ["bash", "zsh", "fish"];

/** What is typed, what is offered then or stands on the line, and what must not be. */
const lines: readonly (readonly [typed: string, offered: readonly string[], not: readonly string[]])[] = [
  ["postrider ", ["serve", "listen", "events", "replay", "tenant", "completion", "help"], ["list", "--port"]],
  ["postrider ev", ["events"], ["serve"]],
  ["postrider events ", ["list", "show"], ["failed", "listen"]],
  ["postrider replay ", ["event", "failed", "all", "list", "show", "cancel"], ["create"]],
  ["postrider replay li", ["list"], ["listen"]],
  ["postrider webhooks ", ["list", "add", "remove", "test", "pause", "resume", "enable"], ["create", "ID|URL"]],
  ["postrider webhooks add --", ["--name", "--type", "--json", "--server"], ["--yes"]],
  ["postrider events list --", ["--state", "--webhook", "--type", "--from", "--json", "--server"], ["--forward-to"]],
  ["postrider events list --sta", ["--state"], ["--server"]],
  ["postrider events list --state ", ["pending", "delivered", "failed"], ["--from"]],
  ["postrider events list --state=f", ["failed"], ["pending"]],
  ["postrider events list --json --state d", ["delivered"], ["failed"]],
  ["postrider events list --code conn", ["connection_refused", "connection_reset"], ["timeout"]],
  ["postrider listen --events ", ["accepted", "failed", "finished"], ["--json"]],
  ["postrider listen --ret", ["--retry"], ["--json"]],
  ["postrider tenant set-tier t1 ", ["free", "pro", "enterprise"], ["list"]],
  ["postrider completion ", ["bash", "zsh", "fish"], ["list"]],
  ["postrider help ev", ["events"], ["serve"]],
  ["postrider --po", ["--port"], ["--host"]],
];

for (const shell of shells) {
  // Whoever does not have a shell skips it, by name.
  describe.skipIf(!isInstalled(shell))(`in ${shell}`, () => {
    test.each(lines)("%s", async (typed, offered, not) => {
      const { out } = await run(`completion ${shell}`);
      const words = await complete(shell, out, typed);
      expect(words).toEqual(expect.arrayContaining([...offered]));
      expect(not.filter((word) => words.includes(word))).toEqual([]);
    });
  });
}

describe("a script", () => {
  test.each(shells)("for %s knows every command and every flag", async (shell) => {
    const { code, out } = await run(`completion ${shell}`);
    expect(code).toBe(0);
    for (const { words, flags } of commands) {
      for (const word of words) expect(out).toContain(word);
      for (const { name } of flags) expect(out).toContain(shell === "fish" ? ` -l ${name.slice(2)} ` : name);
    }
  });

  test.each([
    ["completion", '"postrider completion" needs SHELL. Try: postrider completion bash|zsh|fish'],
    ["completion fisch", 'There is no completion for "fisch". Try: postrider completion fish'],
    ["completion powershell", 'There is no completion for "powershell". Try: postrider completion bash|zsh|fish'],
  ])("%s: exit code 2 and a remedy", async (line, message) => {
    expect(await run(line)).toEqual({ code: 2, out: "", err: `postrider: ${message}` });
  });
});
