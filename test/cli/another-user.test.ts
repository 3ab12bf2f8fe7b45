import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { type DataDir, openDataDir } from "../../src/data-dir.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

const nobody = 65_534;

/** A server's data directory, which only its user may look into. */
let folder: string;
let server: DataDir;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-another-user-"));
  server = openDataDir(folder);
  server.announce({ pid: process.pid, url: "http://127.0.0.1:1" }, () => {});
});
afterAll(() => {
  server.release();
  rmSync(folder, { recursive: true, force: true });
});

async function runAsNobody(...words: string[]) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder, POSTRIDER_PORT: "0" } });
  using _ = spyOn(process, "getuid").mockReturnValue(nobody);
  process.seteuid?.(nobody);
  try {
    const code = await runCommand(words, io);
    return { code, out: out.join("\n"), err: err.join("\n") };
  } finally {
    process.seteuid?.(0);
  }
}

describe.skipIf(process.getuid?.() !== 0)("as another user than the server's", () => {
  test.each([
    ["tenant list", "server.json"],
    ["resume", "server.json"],
    ["nodes", "server.json"],
    ["restart", "server.json"],
    ["healthcheck", "server.json"],
    ["rotate-key", "server.json"],
    ["operator rotate-token", "server.json"],
    ["operator token", "operator-token"],
    ["backup", "master-key"],
    ["compact", "master-key"],
    ["move --to postgres://nobody@127.0.0.1:1/none", "master-key"],
  ])("%s says whose command it is", async (line, file) => {
    const path = join(folder, file);
    expect(await runAsNobody(...line.split(" "))).toEqual({
      code: 1,
      out: "",
      err: expect.stringMatching(
        new RegExp(
          `${path} cannot be read \\(EACCES.*\\)\\. Try: run the command as the user that runs the server\\.$`,
        ),
      ),
    });
  });

  test("doctor says so, and looks no further", async () => {
    const { code, out, err } = await runAsNobody("doctor");
    expect({ code, err }).toEqual({ code: 1, err: "" });
    expect(out).toMatch(/^bad +permissions +.*server\.json cannot be read .*\n +Try: run the command as the user.*$/);
  });

  test("a server is refused as before", async () => {
    const { code, err } = await runAsNobody("serve");
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("belongs to another user") });
  });
});
