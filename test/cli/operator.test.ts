import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { openDataDir } from "../../src/data-dir.ts";
import { operatorTokenFile } from "../../src/secrets.ts";
import { createMigratedDatabase, describeWithPostgres } from "../support/postgres.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-operator-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const fileOf = () => join(folder, operatorTokenFile);
const readToken = () => readFileSync(fileOf(), "utf8").trim();

async function run(...words: string[]) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder } });
  const code = await runCommand(words, io);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

const rotate = (...flags: string[]) => run("operator", "rotate-token", ...flags);
const show = (...flags: string[]) => run("operator", "token", ...flags);

/** Every name in the folder, and what would tell that it was touched. */
function shapeOf(path: string) {
  if (!existsSync(path)) return "no folder";
  return readdirSync(path).map((name) => {
    const { mode, ino, mtimeMs } = lstatSync(join(path, name));
    return { name, mode, ino, mtimeMs };
  });
}

const list = (server: TestApp, token: string) => server.request("GET", "/operator/tenants", { token });

describe("postrider operator token", () => {
  test("prints that of a running server, and nothing else", async () => {
    const server = await startTestApp({ dataDir: folder });
    expect(await show()).toEqual({ code: 0, out: server.operatorToken, err: "" });
    await rotate();
    expect((await list(server, (await show()).out)).status).toBe(200);
    await server.stop({ keepData: true });
  });

  test("prints that of a stopped one, also of the folder that is named", async () => {
    openDataDir(folder).release();
    const token = readToken();
    expect(await show()).toEqual({ code: 0, out: token, err: "" });
    expect((await show("--json")).out).toBe(JSON.stringify({ token, file: fileOf() }));
    const elsewhere = mkdtempSync(join(tmpdir(), "postrider-operator-"));
    renameSync(folder, elsewhere);
    try {
      expect((await show("--data-dir", elsewhere)).out).toBe(token);
    } finally {
      rmSync(elsewhere, { recursive: true });
    }
  });

  const isRoot = process.getuid?.() === 0;

  test.each<[string, RegExp, () => void]>([
    ["is in a folder that is no data directory", /There is no operator token in .* Try: name/, () => {}],
    ["is in no folder", /There is no operator token in .* Try: name/, () => rmSync(folder, { recursive: true })],
    ["is empty", /operator-token is empty\. Try: /, () => writeFileSync(fileOf(), "\n", { mode: 0o600 })],
    ["is no file", /operator-token cannot be read .* Try: /, () => mkdirSync(fileOf(), { mode: 0o700 })],
    [
      "others can read",
      /operator-token is accessible to other users \(mode 0640\)\. Try: chmod 0600 it, and postrider operator rotate-token/,
      () => {
        writeFileSync(fileOf(), "svc_op_open\n");
        chmodSync(fileOf(), 0o640);
      },
    ],
    [
      "is a link",
      /operator-token is a symbolic link, .* Try: replace it with the file itself/,
      () => {
        writeFileSync(join(folder, "elsewhere"), "svc_op_linked\n", { mode: 0o600 });
        symlinkSync(join(folder, "elsewhere"), fileOf());
      },
    ],
  ])("refuses one that %s, and makes and changes nothing", async (_what, said, prepare) => {
    prepare();
    const before = shapeOf(folder);
    const { code, out, err } = await show();
    expect([code, out, err]).toEqual([1, "", expect.stringMatching(said)]);
    expect(shapeOf(folder)).toEqual(before);
  });

  test("refuses one of another user", async () => {
    writeFileSync(fileOf(), "svc_op_theirs\n", { mode: 0o600 });
    using _ = spyOn(process, "getuid").mockReturnValue(statSync(fileOf()).uid + 1);
    const said = /operator-token belongs to another user .* Try: run the command as that user/;
    expect(await show()).toEqual({ code: 1, out: "", err: expect.stringMatching(said) });
  });

  test.skipIf(!isRoot)("warns root of one that belongs to another user", async () => {
    writeFileSync(fileOf(), "svc_op_theirs\n", { mode: 0o600 });
    chownSync(fileOf(), 12_345, 12_345);
    expect(await show()).toEqual({
      code: 0,
      out: "svc_op_theirs",
      err: expect.stringMatching(/^Warning: .*operator-token belongs to another user \(uid 12345\)/),
    });
  });
});

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

  test.skipIf(process.getuid?.() !== 0)("leaves the file to its user when root runs it", async () => {
    openDataDir(folder).release();
    chownSync(fileOf(), 12_345, 12_345);
    expect((await rotate()).code).toBe(0);
    expect(statSync(fileOf()).uid).toBe(12_345);
  });

  describeWithPostgres("where servers share a database", () => {
    test("says that the others still take the old one, to whoever reads JSON too", async () => {
      const { url, remove } = await createMigratedDatabase();
      const env = { POSTRIDER_DATABASE_URL: url };
      const server = await startTestApp({ dataDir: folder, env, durability: "waived" });
      const { code, out, err } = await rotate();
      expect([code, out]).toEqual([0, expect.stringContaining("no longer works on this server.")]);
      expect(err).toMatch(
        /Other servers .* still take the old one\. Try: postrider operator rotate-token on each of them, and copy/,
      );
      await server.stop({ keepData: true });
      const { io, err: said } = createScriptedIo({ env: { ...env, POSTRIDER_DATA_DIR: folder } });
      await runCommand(["operator", "rotate-token", "--json"], io);
      expect(said).toEqual([err]);
      await remove();
    });
  });

  test("makes nothing in a folder that is no data directory", async () => {
    const { code, err } = await rotate();
    expect([code, err]).toEqual([1, expect.stringMatching(/There is no operator token in .* Try: /)]);
    expect([existsSync(fileOf()), existsSync(join(folder, "lock.db"))]).toEqual([false, false]);
  });
});
