import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "../../release/inspect.ts";
import { originOf } from "../../release/origin.ts";
import { ownFile, writePapers } from "../../release/papers.ts";
import { filesOf, targetsNamed } from "../../release/release.ts";
import { withFolders, writeTar } from "../../release/tar.ts";
import { executableName, targets } from "../../release/targets.ts";
import { runnerFor } from "../../release/try.ts";
import { writeZip } from "../../release/zip.ts";
import { commands } from "../../src/cli/commands.ts";
import { loadConfig } from "../../src/config.ts";
import { clientSettings, settings } from "../../src/settings.ts";

const at = new Date("2026-11-23T16:11:52Z");
const papers = writePapers({ committedAt: "2026-11-23T16:11:52Z" }, Buffer.from("MIT"));
const file = (path: string, text: string, mode?: number) => ({ path, bytes: Buffer.from(text), ...(mode && { mode }) });
const entries = [file("a/program", "x".repeat(1000), 0o755), file("a/b/page", "é"), file("a/empty", "")];

/** Runs a program over a file of these bytes. */
async function ask(bytes: Uint8Array, command: (path: string) => string[]) {
  const folder = mkdtempSync(join(tmpdir(), "postrider-release-"));
  try {
    const path = join(folder, "file");
    writeFileSync(path, bytes);
    const child = Bun.spawn(command(path), { stdout: "pipe", stderr: "pipe", env: { ...process.env, TZ: "UTC" } });
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, out, err };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe("archives", () => {
  test("are tar archives with folders, modes, one owner and one time", async () => {
    const { code, out, err } = await ask(writeTar(withFolders(entries), at), (path) => ["tar", "-tvf", path]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const lines = out.trim().split("\n");
    expect(lines.map((line) => line.split(/\s+/).at(-1))).toEqual(["a/", "a/b/", "a/b/page", "a/empty", "a/program"]);
    expect(lines.map((line) => line.slice(0, 10))).toEqual([
      "drwxr-xr-x",
      "drwxr-xr-x",
      "-rw-r--r--",
      "-rw-r--r--",
      "-rwxr-xr-x",
    ]);
  });

  test("hold the bytes of their files", async () => {
    const files = await new Bun.Archive(writeTar(withFolders(entries), at)).files();
    const read = await Promise.all(entries.map(async ({ path }) => files.get(path)?.text()));
    expect(read).toEqual(["x".repeat(1000), "é", ""]);
  });

  test("refuse a name that the form has no room for", () => {
    expect(() => writeTar([file("a".repeat(101), "")], at)).toThrow("is longer than the 100 bytes");
  });

  test.skipIf(!Bun.which("python3"))("are zip archives that another program unpacks", async () => {
    const program = "import sys,zipfile;z=zipfile.ZipFile(sys.argv[1]);print(z.testzip());".concat(
      "[print(i.filename,i.file_size,oct(i.external_attr>>16),*i.date_time) for i in z.infolist()]",
    );
    const { out, err } = await ask(await writeZip(entries, at), (path) => ["python3", "-c", program, path]);
    expect({ err, lines: out.trim().split("\n") }).toEqual({
      err: "",
      lines: [
        "None",
        "a/program 1000 0o100755 2026 11 23 16 11 52",
        "a/b/page 2 0o100644 2026 11 23 16 11 52",
        "a/empty 0 0o100644 2026 11 23 16 11 52",
      ],
    });
  });
});

describe("the manual page", () => {
  const manual = papers.manual.toString();
  const plain = manual.replaceAll("\\-", "-");

  test("has every command with its flags, and every setting", () => {
    for (const { words, flags } of commands) {
      expect(plain).toContain(`.SS postrider ${words.join(" ")}`);
      for (const { name } of flags) expect(plain).toContain(`.B ${name}`);
    }
    for (const { env } of [...Object.values(settings), ...Object.values(clientSettings)]) {
      expect(plain).toContain(`.B ${env}`);
    }
  });

  test("is of the day of the commit", () => {
    expect(manual.split("\n")[0]).toStartWith('.TH POSTRIDER 1 "2026-11-23" "Postrider ');
  });

  test.skipIf(!Bun.which("man"))("is one that man has nothing to say against", async () => {
    const { code, err } = await ask(Buffer.from(manual), (path) => ["man", "--warnings", "-E", "UTF-8", "-l", path]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
  });
});

test.each(targets.map((target) => [target.name, target] as const))("%s comes with all its papers", (_, target) => {
  const paths = filesOf(target, new Uint8Array(), papers).map(({ path }) => path);
  expect(paths.map((path) => path.slice(path.indexOf("/") + 1))).toEqual([
    target.system === "windows" ? "postrider.exe" : "postrider",
    "LICENSE",
    "THIRD-PARTY-LICENSES.txt",
    "README.md",
    "REQUIREMENTS.txt",
    "man/postrider.1",
    "completions/postrider.bash",
    "completions/_postrider",
    "completions/postrider.fish",
  ]);
});

describe("the image", () => {
  const dockerfile = ownFile("Dockerfile").toString();
  const instructions = (name: string) =>
    [...dockerfile.matchAll(new RegExp(`^${name} ((?:.*\\\\\n)*.*)$`, "gm"))].map(([, rest = ""]) => rest);

  test("takes the executables of the targets that it is for, and nothing else of this folder", () => {
    const built = targets.filter(({ debian }) => debian).map((target) => `dist/${executableName(target)}`);
    const copied = instructions("COPY").flatMap((rest) => rest.split(" ").filter((word) => word.includes("/")));
    expect(copied.filter((word) => word.startsWith("dist/"))).toEqual(["dist/postrider-linux-*"]);
    expect(ownFile(".dockerignore").toString().trim().split("\n").sort()).toEqual(
      ["*", "!release/image.sh", ...built.map((name) => `!${name}`)].sort(),
    );
  });

  test("has settings that there are, a user that is not root, and asks by healthcheck", () => {
    const given = Object.fromEntries((instructions("ENV")[0] ?? "").split(" ").map((pair) => pair.split("=")));
    const config = loadConfig({ ...given, POSTRIDER_PUBLIC_URL: "https://relay.example.com" }, new Map());
    expect(config).toMatchObject({ host: "0.0.0.0", port: 8080, dataDir: "/data" });
    expect(instructions("USER")).toEqual(["65532:65532"]);
    expect(instructions("VOLUME")).toEqual([config.dataDir]);
    expect(instructions("EXPOSE")).toEqual([String(config.port)]);
    expect(instructions("HEALTHCHECK")[0]).toEndWith('CMD ["/usr/local/bin/postrider", "healthcheck"]');
  });
});

describe("an executable is looked into", () => {
  test.skipIf(process.platform === "win32")("for the libraries that it needs", async () => {
    const here = targets.find(({ system, name }) => system === process.platform && name.endsWith(`-${process.arch}`));
    const { libraries } = inspect(Buffer.from(await Bun.file(process.execPath).arrayBuffer()));
    expect(libraries.length).toBeGreaterThan(0);
    expect(libraries.filter((library) => here?.libraries.includes(library) === false)).toEqual([]);
  });

  test("and is refused when it is none", () => {
    expect(() => inspect(Buffer.from("#!/bin/sh\n"))).toThrow("no executable");
  });
});

describe("a try", () => {
  const machine = (platform: string, arch: string, ...there: string[]) => ({
    platform,
    arch,
    has: (path: string) => there.includes(path),
    finds: (program: string) => there.includes(program),
  });
  const qemu = ["qemu-aarch64-static", "/usr/aarch64-linux-gnu"];
  test.each([
    ["linux-x64", machine("linux", "x64"), []],
    ["linux-x64", machine("linux", "arm64"), "needs x64"],
    ["linux-x64", machine("darwin", "x64"), "needs linux"],
    ["linux-arm64", machine("linux", "arm64"), []],
    ["linux-arm64", machine("linux", "x64", ...qemu), ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]],
    ["linux-arm64", machine("linux", "x64"), "needs qemu-aarch64-static and /usr/aarch64-linux-gnu"],
    ["linux-x64-musl", machine("linux", "x64"), "needs /lib/ld-musl-x86_64.so.1"],
    ["linux-x64-musl", machine("linux", "x64", "/lib/ld-musl-x86_64.so.1"), []],
    ["darwin-arm64", machine("darwin", "arm64"), []],
    ["windows-x64", machine("win32", "x64"), []],
    ["windows-x64", machine("linux", "x64"), "needs windows"],
  ])("of %s runs what the machine can run, and says what it lacks", (name, here, expected) => {
    const target = targets.find((one) => one.name === name);
    expect(target && runnerFor(target, here)).toEqual(expected);
  });
});

test("a target that there is not is refused", () => {
  expect(() => targetsNamed(["linux-x68"])).toThrow("There is no target linux-x68. Try: linux-x64, ");
  expect(targetsNamed([])).toEqual(targets);
  expect(targetsNamed(["darwin-arm64"]).map(({ bun }) => bun)).toEqual(["bun-darwin-arm64"]);
});

test("where there is no clone, commit and time are unknown", () => {
  const folder = mkdtempSync(join(tmpdir(), "postrider-no-clone-"));
  expect(originOf(folder)).toEqual({ commit: "unknown", committedAt: "unknown" });
  rmSync(folder, { recursive: true });
});
