import { describe, expect, test } from "bun:test";
import { commands } from "../../src/cli/commands.ts";
import { runCommand } from "../../src/cli/run.ts";
import { clientSettings, settings } from "../../src/settings.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

async function run(line: string, options: Parameters<typeof createScriptedIo>[0] = {}) {
  const { io, out, err } = createScriptedIo(options);
  const code = await runCommand(line.split(" ").filter(Boolean), io);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

describe("help", () => {
  test("shows every command", async () => {
    const { code, out } = await run("help");
    expect(code).toBe(0);
    for (const form of [
      "serve",
      "demo",
      "listen",
      "send [EVENT]",
      "events list",
      "events show ID",
      "replay failed",
      "tenant create",
      "tenant delete ID",
      "check-url URL",
      "completion SHELL",
      "version",
    ]) {
      expect(out).toContain(`postrider ${form}`);
    }
  });

  test.each(
    [...Object.values(settings), ...Object.values(clientSettings)].map((setting) => [setting.env, setting] as const),
  )("shows %s", async (env, setting) => {
    const line = (await run("help")).out.split("\n").find((each) => each.trim().startsWith(env)) ?? "";
    expect(line).toContain(setting.default === "" ? `for example ${setting.example}` : `(default ${setting.default})`);
    if ("flag" in setting && setting.flag) expect(line).toContain(setting.flag);
  });

  test("has no line of blanks on any command", async () => {
    const pages = await Promise.all(commands.map(({ words }) => run(["help", ...words].join(" "))));
    expect(pages.filter(({ out }) => / $|\n{3}/m.test(out))).toEqual([]);
  });

  test("of a replay speaks of filters only where there are some", async () => {
    const pages = await Promise.all(["event", "failed", "all"].map((verb) => run(`help replay ${verb}`)));
    expect(pages.map(({ out }) => out.includes("All filters"))).toEqual([false, true, true]);
  });

  test("explains no flag by one that the command does not have", async () => {
    for (const { words, flags } of commands) {
      const named = flags.flatMap(({ doc }) => doc.match(/(?<![\w-])--[a-z][a-z-]*/g) ?? []);
      const known = flags.map(({ name }) => name);
      expect({ words, unknown: named.filter((name) => !known.includes(name)) }).toEqual({ words, unknown: [] });
    }
  });

  test.each([
    ["help demo", "postrider demo [flags]"],
    ["demo --help", "postrider demo [flags]"],
    ["demo -h", "postrider demo [flags]"],
    ["help tenant set-tier", "postrider tenant set-tier ID TIER [flags]"],
    ["tenant set-tier --help", "postrider tenant set-tier ID TIER [flags]"],
    ["tenant set-tier t1 --help", "postrider tenant set-tier ID TIER [flags]"],
    ["help tenant", "postrider tenant create [flags]"],
    ["tenant --help", "postrider tenant create [flags]"],
    ["--port 80 --help", "postrider serve [flags]"],
    ["help listen", "postrider listen [flags]"],
    ["send --help", "postrider send [EVENT] [flags]"],
    ["events show evt_1 --help", "postrider events show ID [flags]"],
    ["replay --help", "postrider replay event ID [flags]"],
    ["webhooks --help", "postrider webhooks list [flags]"],
    ["webhooks remove --help", "postrider webhooks remove ID|URL [flags]"],
  ])("%s", async (line, start) => {
    const { code, out } = await run(line);
    expect(code).toBe(0);
    expect(out.split("\n")[0]).toBe(start);
  });

  test.each(["--help", "-h", "help"])("%s is the overview", async (line) => {
    expect((await run(line)).out).toContain("Settings");
  });

  test("of a command that signs in, says with what", async () => {
    for (const command of ["listen", "send", "events list", "replay failed", "webhooks add"]) {
      const { out } = await run(`help ${command}`);
      for (const name of [
        "--server URL",
        "POSTRIDER_URL",
        "POSTRIDER_LOGIN",
        "POSTRIDER_PASSWORD",
        "POSTRIDER_TOKEN",
      ]) {
        expect(out).toContain(name);
      }
    }
  });

  test("names the nearest command", async () => {
    expect(await run("help dmo")).toEqual({
      code: 2,
      out: "",
      err: 'postrider: There is no command "dmo". Try: postrider help demo',
    });
  });

  test("names no command that is another word", async () => {
    expect((await run("help nope")).err).toBe('postrider: There is no command "nope". Try: postrider help');
    expect((await run("nope")).err).toBe('postrider: There is no command "nope". Try: postrider help');
  });

  test("has colours only on a terminal that wants them", async () => {
    const mark = "\u001b[";
    expect((await run("help")).out).not.toContain(mark);
    expect((await run("help", { isTerminal: true })).out).toContain(mark);
    expect((await run("help", { isTerminal: true, env: { NO_COLOR: "1" } })).out).not.toContain(mark);
    expect((await run("help", { isTerminal: true, env: { TERM: "dumb" } })).out).not.toContain(mark);
  });
});

describe("what the operator can mend is one line on standard error", () => {
  test.each([
    ["serv", 2, 'postrider: There is no command "serv". Try: postrider serve'],
    ["tenant set-tier t1 por", 2, 'postrider: "por" is not a tier. Try: pro'],
    ["tenant create --tier gold", 2, 'postrider: "gold" is not a tier. Try: free, pro, business, enterprise'],
    ["config --log-level x", 2, "postrider: --log-level must be debug, info, warn or error"],
    ["backup s3:/b/x", 2, 'postrider: "s3:/b/x" is not an address of S3. Try: s3://bucket/prefix'],
    ["restore s3:/b/x --data-dir /nowhere", 2, 'postrider: "s3:/b/x" is not an address of S3. Try: s3://bucket/prefix'],
    ["demo --database-url x", 2, "postrider: --database-url must be postgres://user:password@host:port/database"],
    [
      "selftest crash --database-url x",
      2,
      "postrider: --database-url must be postgres://user:password@host:port/database",
    ],
    ["serve --port x", 2, 'postrider: --port must be a whole number from 0 to 65535, not "x". Try: --port 8080'],
    [
      "tenant list --data-dir /nowhere",
      1,
      "postrider: No server is running on the data directory /nowhere. Try: start one with postrider serve, or pass its folder with --data-dir.",
    ],
  ])("%s: exit code %i", async (line, code, start) => {
    const result = await run(line);
    expect(result).toMatchObject({ code, out: "" });
    expect(result.err).toStartWith(start);
    expect(result.err).not.toContain("\n");
  });
});
