import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { operatorTokenFile } from "../../src/data-dir.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-operator-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const fileOf = () => join(folder, operatorTokenFile);
const readToken = () => readFileSync(fileOf(), "utf8").trim();

async function rotate(...flags: string[]) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder } });
  const code = await runCommand(["operator", "rotate-token", ...flags], io);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

const list = (server: TestApp, token: string) => server.request("GET", "/operator/tenants", { token });

describe("postrider operator rotate-token", () => {
  test("replaces the token of a running server at once, and prints none", async () => {
    const server = await startTestApp({ dataDir: folder });
    expect((await list(server, server.operatorToken)).status).toBe(200);

    const { code, out, err } = await rotate();
    expect([code, err]).toEqual([0, ""]);
    const fresh = readToken();
    expect(fresh).toMatch(/^svc_op_[0-9a-f]{48}$/);
    expect(fresh).not.toBe(server.operatorToken);
    expect(out).toContain(fileOf());
    expect(out).not.toContain("svc_op_");
    expect(statSync(fileOf()).mode & 0o777).toBe(0o600);

    expect((await list(server, server.operatorToken)).status).toBe(401);
    expect((await list(server, fresh)).status).toBe(200);
    // The commands find the new one in the file, so it can be rotated again.
    expect((await rotate("--json")).out).toBe(JSON.stringify({ rotated: true, file: fileOf(), running: true }));
    expect((await list(server, fresh)).status).toBe(401);

    const acts = server.log.map((line) => JSON.parse(line)).filter(({ event }) => event === "operator.acted");
    expect(acts).toHaveLength(2);
    expect(acts[0]).toMatchObject({
      act: "POST /operator/token/rotate",
      by: expect.stringMatching(/^command of [\w.@-]+$/),
      address: "127.0.0.1",
    });
    await server.stop({ keepData: true });

    const again = await startTestApp({ dataDir: folder });
    expect(again.operatorToken).toBe(readToken());
    await again.stop({ keepData: true });
  });

  test("replaces that of a stopped server in its folder", async () => {
    const server = await startTestApp({ dataDir: folder });
    await server.stop({ keepData: true });
    const { code, err } = await rotate();
    expect([code, err]).toEqual([0, ""]);
    expect(readToken()).not.toBe(server.operatorToken);
    expect(statSync(fileOf()).mode & 0o777).toBe(0o600);
  });

  test("makes nothing in a folder that is no data directory", async () => {
    const { code, err } = await rotate();
    expect([code, err]).toEqual([1, expect.stringMatching(/There is no operator token in .* Try: /)]);
    expect([existsSync(fileOf()), existsSync(join(folder, "lock.db"))]).toEqual([false, false]);
  });
});
