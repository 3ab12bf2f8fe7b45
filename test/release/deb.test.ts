import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { debianVersion, debName, writeDeb } from "../../release/deb.ts";
import { ownFile, writePapers } from "../../release/papers.ts";
import { loadConfig } from "../../src/config.ts";

/** The package for Debian, taken apart by `ar` and `tar`, and by Debian's own program where there is one. */

const at = new Date("2026-11-23T16:11:52Z");
const papers = writePapers({ committedAt: "2026-11-23T16:11:52Z" }, Buffer.from("MIT"));
const build = () => writeDeb("arm64", Buffer.from("\x7fELF"), papers, at);

const folder = mkdtempSync(join(tmpdir(), "postrider-deb-"));
const path = join(folder, "postrider.deb");
beforeAll(async () => writeFileSync(path, await build()));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe", env: { ...process.env, TZ: "UTC" } });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${err}`);
  return out;
}

test("one commit gives one package, byte for byte", async () => {
  expect(Bun.hash(await build())).toBe(Bun.hash(await build()));
});

test.each([
  ["1.2.3", "1.2.3-1"],
  ["1.0.0-rc.1", "1.0.0~rc.1-1"],
])("%s is %s to Debian", (version, expected) => {
  expect(debianVersion(version)).toBe(expected);
});

describe.skipIf(!Bun.which("dpkg-deb"))("dpkg-deb", () => {
  test("knows what it is", async () => {
    const fields = await run("dpkg-deb", "--field", path);
    expect(fields).toContain(`Package: postrider\nVersion: ${debianVersion()}\nArchitecture: arm64\n`);
    expect(debName("arm64")).toBe(`postrider_${debianVersion()}_arm64.deb`);
  });

  test("finds every file with its mode, and all of root", async () => {
    const lines = (await run("dpkg-deb", "--contents", path)).trim().split("\n");
    const files = lines.filter((line) => !line.endsWith("/")).map((line) => [line.slice(0, 10), line.split("./")[1]]);
    expect(files).toEqual([
      ["-rw-------", "etc/postrider/postrider.env"],
      ["-rwxr-xr-x", "usr/bin/postrider"],
      ["-rw-r--r--", "usr/lib/systemd/system/postrider.service"],
      ["-rw-r--r--", "usr/share/bash-completion/completions/postrider"],
      ["-rw-r--r--", "usr/share/doc/postrider/changelog.Debian.gz"],
      ["-rw-r--r--", "usr/share/doc/postrider/changelog.gz"],
      ["-rw-r--r--", "usr/share/doc/postrider/copyright"],
      ["-rw-r--r--", "usr/share/fish/vendor_completions.d/postrider.fish"],
      ["-rw-r--r--", "usr/share/lintian/overrides/postrider"],
      ["-rw-r--r--", "usr/share/man/man1/postrider.1.gz"],
      ["-rw-r--r--", "usr/share/zsh/vendor-completions/_postrider"],
    ]);
    expect(lines.filter((line) => !line.includes(" root/root "))).toEqual([]);
  });

  test("finds scripts that a shell understands, and sums that are right", async () => {
    await run("dpkg-deb", "--raw-extract", path, join(folder, "raw"));
    for (const name of ["postinst", "prerm", "postrm"]) await run("sh", "-n", join(folder, "raw/DEBIAN", name));
    const said = await run("sh", "-c", `cd ${folder}/raw && md5sum --check --strict DEBIAN/md5sums`);
    expect(said.trim().split("\n")).toHaveLength(10);
  });
});

describe("the service", () => {
  const unit = ownFile("release/debian/postrider.service").toString();
  const environment = Object.fromEntries(
    [...unit.matchAll(/^Environment=(\w+)=(.+)$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
  const settings = ownFile("release/debian/postrider.env").toString();

  test("starts in local mode, with what it stores in its state directory", () => {
    const { dataDir, localMode } = loadConfig(environment, new Map());
    expect({ dataDir, localMode }).toEqual({ dataDir: "/var/lib/postrider", localMode: true });
    expect(unit).toContain("\nStateDirectory=postrider\n");
  });

  test.each([
    ["of the package", unit],
    ["of the documentation", ownFile("docs/operating.md").toString()],
  ])("%s: a process may take over from another one, and a start take its time", (_, text) => {
    expect(text).toMatch(/^Type=notify\nNotifyAccess=all$/m);
    expect(text).toMatch(/^TimeoutStartSec=infinity$/m);
  });

  test("starts with every setting that its file proposes", () => {
    const proposed = [...settings.matchAll(/^#(POSTRIDER_\w+)=(.+)$/gm)].map(([, name, value]) => [name, value]);
    expect(proposed.length).toBeGreaterThan(2);
    const config = loadConfig({ ...environment, ...Object.fromEntries(proposed) }, new Map());
    expect(config).toMatchObject({ localMode: false, publicUrl: "https://relay.example.com" });
    expect(settings.match(/^[^#\n]/m)).toBeNull();
  });

  test.skipIf(!Bun.which("systemd-analyze"))("is one that systemd finds well confined", async () => {
    const file = join(folder, "postrider.service");
    writeFileSync(file, unit);
    const said = await run("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=25", file);
    expect(said).toContain("Overall exposure level for postrider.service");
  });
});
