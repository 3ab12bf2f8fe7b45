import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../src/version.ts";
import { dist } from "./compile.ts";
import { originOf } from "./origin.ts";
import { type Target, targets } from "./targets.ts";

/**
 * `bun run release:try`: unpacks the archives that `bun run release` has left, and runs what is in them: its version, which has
 * to be that of this clone, and the demo, which verifies every signature of its deliveries. What this machine cannot run is
 * named; an executable for arm64 runs in qemu, if that and a C library for it are installed (Debian's qemu-user-static and
 * libc6-arm64-cross).
 */

/** What the demo may take, in an emulator on a machine that does other things. */
const limitMs = 180_000;
const emulator = "qemu-aarch64-static";
const foreignRoot = "/usr/aarch64-linux-gnu";

/** The words before the program's own with which it is run here, or why it is not. */
export function runnerFor(
  { name, system }: Pick<Target, "name" | "system">,
  here: { platform: string; arch: string; has(path: string): boolean; finds(program: string): boolean },
): readonly string[] | string {
  if ((system === "windows" ? "win32" : system) !== here.platform) return `needs ${system}`;
  if (name.endsWith("-musl")) {
    const loader = "/lib/ld-musl-x86_64.so.1";
    return here.has(loader) && here.arch === "x64" ? [] : `needs ${loader}`;
  }
  if (name.endsWith(`-${here.arch}`)) return [];
  if (name !== "linux-arm64") return `needs ${name.slice(name.indexOf("-") + 1)}`;
  return here.finds(emulator) && here.has(foreignRoot)
    ? [emulator, "-L", foreignRoot]
    : `needs ${emulator} and ${foreignRoot}`;
}

async function run(command: readonly string[], cwd: string): Promise<string> {
  const child = Bun.spawn([...command], { cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: limitMs });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} ended with ${child.exitCode}:\n${out}${err}`);
  return out;
}

async function tryArchive(path: string, before: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "postrider-try-"));
  try {
    await run(["tar", "-xf", path, "-C", folder, "--strip-components=1"], folder);
    const program = [...before, join(folder, process.platform === "win32" ? "postrider.exe" : "postrider")];
    const said = JSON.parse(await run([...program, "version", "--json"], folder));
    const { commit } = originOf();
    if (said.version !== version || said.commit !== commit) {
      throw new Error(`${path} is ${said.version} of ${said.commit}, and this is ${version} of ${commit}`);
    }
    const told = await run([...program, "demo"], folder);
    if (!told.includes("Every check passed")) throw new Error(told);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const folder = join(dist, "release");
  const archives = existsSync(folder) ? readdirSync(folder).filter((name) => /\.(tar\.gz|zip)$/.test(name)) : [];
  if (archives.length === 0) throw new Error("dist/release has no archives. Try: bun run release");
  const here = {
    platform: process.platform,
    arch: process.arch,
    has: existsSync,
    finds: (program: string) => Bun.which(program) !== null,
  };
  for (const target of targets) {
    const archive = archives.find((name) => name.startsWith(`postrider-${version}-${target.name}.`));
    if (!archive) continue;
    const runner = runnerFor(target, here);
    const startedAt = performance.now();
    if (typeof runner !== "string") await tryArchive(join(folder, archive), runner);
    const took = ((performance.now() - startedAt) / 1000).toFixed(1);
    say(typeof runner === "string" ? `skipped: ${target.name} ${runner}` : `ok       ${target.name}  ${took} s`);
  }
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  });
}
