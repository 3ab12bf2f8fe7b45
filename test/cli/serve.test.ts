import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { createScriptedIo, type Script } from "../support/scripted-io.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-serve-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A server that is ended as soon as it says that it runs. @returns all that it printed */
async function serve({ env = {}, isTerminal = true }: Script): Promise<string> {
  const given = { POSTRIDER_DATA_DIR: folder, POSTRIDER_PORT: "0", POSTRIDER_MIN_FREE_DISK: "0", ...env };
  const { io, out, err, when, interrupt } = createScriptedIo({ env: given, isTerminal });
  const ended = runCommand(["serve"], io);
  await when(out, (line) => line.includes("Postrider is running") || line.includes("server.started"));
  interrupt();
  expect([await ended, err]).toEqual([0, []]);
  return out.join("\n");
}

describe("the operator token", () => {
  test("is shown on a terminal by the first start of local mode, and by no other", async () => {
    const first = await serve({});
    const file = join(folder, "operator-token");
    const token = (await Bun.file(file).text()).trim();
    expect(first).toMatch(new RegExp(`/operator\\n.*${token}, shown this once: later by postrider operator token`));
    expect(await serve({})).not.toContain("operator");
    // Lost and made anew is as on the first start.
    rmSync(file);
    expect(await serve({})).toContain((await Bun.file(file).text()).trim());
  });

  test.each<[string, Script]>([
    ["in public mode", { env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com" } }],
    ["where a program reads", { isTerminal: false }],
    ["in a log of JSON", { env: { POSTRIDER_LOG_FORMAT: "json" } }],
  ])("is not shown %s", async (_where, script) => {
    expect(await serve(script)).not.toContain("svc_op_");
  });
});
