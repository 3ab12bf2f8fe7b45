import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeMove } from "../../src/cli/move.ts";
import { runCommand } from "../../src/cli/run.ts";
import { openDataDir } from "../../src/data-dir.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-move-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const nowhere = "postgres://user:secret@127.0.0.1:1/db";

async function move(args: readonly string[], env: Record<string, string> = {}) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder, ...env } });
  const code = await runCommand(["move", ...args], io);
  return { code, said: [...out, ...err].join("\n") };
}

describe("postrider move", () => {
  test.each([[[]], [["--to", "mysql://x"]], [["--to", "sqlite:"]], [["--to", "postgres"]]])(
    "%j is no form of it",
    async (args) => {
      const { code, said } = await move(args);
      expect(code).toBe(2);
      expect(said).toContain("Try: ");
    },
  );

  test.each([
    ["postgres", /^postrider: --to postgres needs POSTRIDER_DATABASE_URL, which is not set\. Try: /],
    ["sqlite:there", /^postrider: Moving back needs POSTRIDER_DATABASE_URL, which is not set\. Try: /],
  ])("--to %s says which setting it needs", async (to, expected) => {
    expect((await move(["--to", to])).said).toMatch(expected);
  });

  test("makes nothing where no server has run", async () => {
    const { code, said } = await move(["--to", nowhere]);
    expect(code).toBe(1);
    expect(said).toMatch(/No server has run on .* Try: name its data directory/);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("wants the secrets where it moves back to", async () => {
    const there = join(folder, "there");
    const { code, said } = await move(["--to", `sqlite:${there}`], { POSTRIDER_DATABASE_URL: nowhere });
    expect(code).toBe(1);
    expect(said).toMatch(/There is no master-key in .* Try: mkdir -p .* && cp .*master-key/);
    expect(existsSync(there)).toBe(false);
  });

  test("refuses while a server uses the data directory", async () => {
    const held = openDataDir(folder);
    const { code, said } = await move(["--to", nowhere]);
    held.release();
    expect(code).toBe(1);
    expect(said).toContain("A server is using the data directory");
  });

  test.each([[nowhere], ["postgres"]])("says where nothing answers, without the password (%s)", async (to) => {
    openDataDir(folder).release();
    writeFileSync(join(folder, "postrider.db"), "");
    const { code, said } = await move(["--to", to], { POSTRIDER_DATABASE_URL: nowhere });
    expect(code).toBe(1);
    expect(said).toMatch(/127\.0\.0\.1:1\/db.*Try: /);
    expect(said).not.toContain("secret");
  });

  test("shows how far it is", () => {
    const progress = { step: "copying", what: "event", done: 1_200_000, total: 3_000_000, secondsLeft: 40 } as const;
    expect(describeMove(progress)).toBe("Copying event: 1,200,000 of 3,000,000 rows, about 40 s left");
    expect(describeMove({ ...progress, step: "indexing", what: "delivery_failed" })).toBe(
      "Making the index delivery_failed, about 40 s left",
    );
    expect(describeMove({ ...progress, step: "checking", secondsLeft: null })).toBe("Checking event");
  });
});
