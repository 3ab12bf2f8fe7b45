import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { version } from "../src/version.ts";
import { compile, dist, licencesFile, prepare, sbomFile } from "./compile.ts";
import { debName, writeDeb } from "./deb.ts";
import { inspect } from "./inspect.ts";
import { originOf } from "./origin.ts";
import { ownFile, type Papers, writePapers } from "./papers.ts";
import { type Entry, withFolders, writeTar } from "./tar.ts";
import { executableName, type Target, targets } from "./targets.ts";
import { writeZip } from "./zip.ts";

/**
 * `bun run release`: leaves in dist/release what a page of a release shows: archives and packages, the list of what is in
 * the executables, and the checksums of all of it. One commit gives the same bytes, in whatever folder. `bun run release
 * linux-x64` builds that alone.
 */

const out = join(dist, "release");
const pack = promisify(gzip);

/** A release outside of a clone has files of the first day that a zip archive knows. */
const unknownTime = new Date("1980-01-01T00:00:00Z");

/** What is unpacked into a folder of its own. */
export function filesOf(target: Target, executable: Uint8Array, papers: Papers): Entry[] {
  const top = `postrider-${version}-${target.name}/`;
  const files: Entry[] = [
    { path: target.system === "windows" ? "postrider.exe" : "postrider", bytes: executable, mode: 0o755 },
    { path: "LICENSE", bytes: ownFile("LICENSE") },
    { path: "THIRD-PARTY-LICENSES.txt", bytes: papers.licences },
    { path: "README.md", bytes: ownFile("README.md") },
    { path: "REQUIREMENTS.txt", bytes: Buffer.from(`${target.needs}\n`) },
    { path: "man/postrider.1", bytes: papers.manual },
    { path: "completions/postrider.bash", bytes: papers.bash },
    { path: "completions/_postrider", bytes: papers.zsh },
    { path: "completions/postrider.fish", bytes: papers.fish },
  ];
  return files.map((file) => ({ ...file, path: `${top}${file.path}` }));
}

/** @throws Error when the executable asks for what `REQUIREMENTS.txt` does not name, or carries another program's name */
export function check({ name, system, libraries }: Target, executable: Buffer): void {
  const found = inspect(executable);
  const other = found.libraries.filter((library) => !libraries.includes(library));
  if (other.length > 0) throw new Error(`${name} needs ${other.join(", ")}, which release/targets.ts does not name`);
  if (system !== "linux" && found.name?.toLowerCase() !== "postrider")
    throw new Error(`${name} is called ${found.name}`);
}

async function writeArchive(target: Target, files: readonly Entry[], at: Date) {
  if (target.system === "windows") return { extension: "zip", bytes: await writeZip(files, at) };
  return { extension: "tar.gz", bytes: await pack(writeTar(withFolders(files), at), { level: 9 }) };
}

/** @throws Error for a name that none has */
export function targetsNamed(names: readonly string[]): readonly Target[] {
  const unknown = names.find((name) => !targets.some((target) => target.name === name));
  if (unknown !== undefined) {
    throw new Error(`There is no target ${unknown}. Try: ${targets.map(({ name }) => name).join(", ")}`);
  }
  return targets.filter(({ name }) => names.length === 0 || names.includes(name));
}

async function main(): Promise<void> {
  const asked = targetsNamed(process.argv.slice(2));
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const origin = originOf();
  const { commit, committedAt } = origin;
  const at = committedAt === "unknown" ? unknownTime : new Date(committedAt);
  await prepare();
  const papers = writePapers(origin, readFileSync(licencesFile));
  const sums = new Map<string, string>();
  const keep = (name: string, bytes: Uint8Array) => {
    writeFileSync(join(out, name), bytes);
    sums.set(name, createHash("sha256").update(bytes).digest("hex"));
    process.stdout.write(`dist/release/${name}  ${(bytes.length / 2 ** 20).toFixed(1)} MiB\n`);
  };
  for (const target of asked) {
    const path = join(dist, executableName(target));
    await compile(path, target);
    const executable = readFileSync(path);
    check(target, executable);
    const { extension, bytes } = await writeArchive(target, filesOf(target, executable, papers), at);
    keep(`postrider-${version}-${target.name}.${extension}`, bytes);
    if (target.debian) keep(debName(target.debian), await writeDeb(target.debian, executable, papers, at));
  }
  keep(`postrider-${version}.cdx.json`, readFileSync(join(dist, sbomFile)));
  const lines = [...sums].map(([name, sum]) => `${sum}  ${name}\n`).sort();
  writeFileSync(join(out, "checksums.txt"), lines.join(""));
  process.stdout.write(`dist/release/checksums.txt  ${version}, commit ${commit} of ${committedAt}\n`);
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  });
}
