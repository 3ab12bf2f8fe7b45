import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildWeb } from "../web/build.ts";
import { writeLicences } from "./licences.ts";
import { root } from "./lock.ts";
import { withIdentifier } from "./macos.ts";
import { originOf } from "./origin.ts";
import { writeSbom } from "./sbom.ts";
import { entryPoints, findShipped } from "./shipped.ts";
import type { Target } from "./targets.ts";
import { nameExecutable } from "./windows.ts";

export const dist = join(root, "dist");
/** What is in every executable, whatever its platform. */
export const sbomFile = "postrider.cdx.json";
/** What `postrider licenses` prints. */
export const licencesFile = join(dist, "about", "licences.txt");

const options = [
  "build",
  "--compile",
  // Settings come from the real environment only, whatever lies in the folder in which the program is started.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
  "--minify-whitespace",
  "--minify-syntax",
  "--bytecode",
  // What is loaded on demand is a file of its own: otherwise a server reads the source of every command when it starts, and
  // has 8 MB more. The order in which files run is only sure without import circles, which `test/architecture.test.ts` forbids.
  "--splitting",
  // Bytecode alone means CommonJS, and there `import.meta.url` is the path of this machine, written into the executable.
  "--format=esm",
  // All entry points in one folder: `new URL("./reader-worker.ts", import.meta.url)` then finds the worker in the
  // executable as it does among the sources. By default it would be at store/sqlite/, and main at the top.
  "--entry-naming=[name].[ext]",
  // The dashboard, under the folder's last name: `src/http/dashboard-files.ts` finds it there.
  "--asset=dist/web",
  "--asset=dist/about",
];

/** What `postrider version` and `/metrics` say of the build. */
function defined(): string[] {
  const { commit, committedAt } = originOf();
  return [
    `--define=POSTRIDER_BUILD_COMMIT=${JSON.stringify(commit)}`,
    `--define=POSTRIDER_BUILD_COMMITTED_AT=${JSON.stringify(committedAt)}`,
  ];
}

/** What every executable contains beside the program: the dashboard, and the licences. */
export async function prepare(): Promise<void> {
  mkdirSync(join(dist, "about"), { recursive: true });
  await buildWeb();
  const shipped = await findShipped();
  writeFileSync(licencesFile, writeLicences(shipped));
  writeFileSync(join(dist, sbomFile), writeSbom(shipped));
  process.stdout.write(`dist/${sbomFile}  ${shipped.length} packages\n`);
}

/** @param target another platform than this one; its runtime is downloaded from the npm registry once */
export async function compile(outfile: string, target?: Target): Promise<void> {
  const startedAt = performance.now();
  const aim = target ? [`--target=${target.bun}`] : [];
  const runtime = target?.system === "windows" ? await namedRuntime(target) : null;
  try {
    if (runtime) aim.push(`--compile-executable-path=${runtime.path}`);
    await bundle([...options, ...defined(), ...aim, ...entryPoints()], outfile);
    if (target?.system === "darwin") {
      writeFileSync(outfile, withIdentifier(readFileSync(outfile), "postrider"));
    }
  } finally {
    if (runtime) rmSync(runtime.folder, { recursive: true, force: true });
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const size = Math.round(statSync(outfile).size / 2 ** 20);
  process.stdout.write(`${outfile.slice(root.length + 1)}  ${size} MiB  ${seconds} s\n`);
}

/**
 * The runtime for Windows with our name in its resources. The flags of `bun build` for that (`--windows-title`) work on Windows
 * only, and once the program is in the file, its resources are not the last section any more and cannot grow.
 */
async function namedRuntime({ bun }: Target): Promise<{ folder: string; path: string }> {
  const folder = mkdtempSync(join(tmpdir(), "postrider-build-"));
  try {
    const empty = join(folder, "empty.ts");
    writeFileSync(empty, "");
    // Leaves the runtime in the cache, if it is not there.
    await bundle(["build", "--compile", `--target=${bun}`, empty], join(folder, "empty.exe"));
    const cache = (await say([process.execPath, "pm", "cache"])).trim();
    const path = join(folder, "runtime.exe");
    writeFileSync(path, nameExecutable(readFileSync(join(cache, `${bun}-v${Bun.version}`))), { mode: 0o755 });
    return { folder, path };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function bundle(args: readonly string[], outfile: string): Promise<void> {
  rmSync(outfile, { force: true });
  const said = await say([process.execPath, ...args, "--outfile", outfile]);
  if ((statSync(outfile, { throwIfNoEntry: false })?.size ?? 0) === 0) {
    throw new Error(`${outfile} was not built:\n${said}`);
  }
}

async function say(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { cwd: root, stdout: "pipe", stderr: "pipe" });
  const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}:\n${said.join("")}`);
  return said[0];
}
