import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeLicences } from "./release/licences.ts";
import { writeSbom } from "./release/sbom.ts";
import { entryPoints, findShipped } from "./release/shipped.ts";
import { buildWeb } from "./web/build.ts";

/**
 * Builds the executable: `bun run build` for this machine, `bun run build:all` for every platform with checksums.
 * Details that were measured or found out are beside the option they decide.
 */

const root = import.meta.dir;
const dist = join(root, "dist");

/** `--target` of `bun build` → name of the file. */
const releases: Readonly<Record<string, string>> = {
  "bun-linux-x64": "postrider-linux-x64",
  "bun-linux-arm64": "postrider-linux-arm64",
  "bun-linux-x64-musl": "postrider-linux-x64-musl",
  "bun-darwin-arm64": "postrider-darwin-arm64",
  "bun-windows-x64": "postrider-windows-x64.exe",
};

const options = [
  "build",
  "--compile",
  // Settings come from the real environment only, whatever lies in the folder in which the program is started.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
  "--minify-whitespace",
  "--minify-syntax",
  "--bytecode",
  // Bytecode alone means CommonJS, and there `import.meta.url` is the path of this machine, written into the executable.
  "--format=esm",
  // All entry points in one folder: `new URL("./reader-worker.ts", import.meta.url)` then finds the worker in the
  // executable as it does among the sources. By default it would be at store/sqlite/, and main at the top.
  "--entry-naming=[name].[ext]",
  // The dashboard, under the folder's last name: `src/http/dashboard-files.ts` finds it there.
  "--asset=dist/web",
  // What `postrider licenses` prints.
  "--asset=dist/about",
];

/** What `/metrics` says of the build; outside of a clone nobody knows it. */
function commitOption(): string[] {
  const { exitCode, stdout } = Bun.spawnSync(["git", "rev-parse", "--short=12", "HEAD"], {
    cwd: root,
    stderr: "ignore",
  });
  const commit = exitCode === 0 ? stdout.toString().trim() : "unknown";
  return ["--define", `POSTRIDER_BUILD_COMMIT=${JSON.stringify(commit)}`];
}

/** What is in every executable, whatever its platform. */
const sbom = "postrider.cdx.json";

async function describe(): Promise<void> {
  const shipped = await findShipped();
  mkdirSync(join(dist, "about"), { recursive: true });
  writeFileSync(join(dist, "about", "licences.txt"), writeLicences(shipped));
  writeFileSync(join(dist, sbom), writeSbom(shipped));
  process.stdout.write(`dist/${sbom}  ${shipped.length} packages\n`);
}

async function compile(outfile: string, target?: string): Promise<void> {
  const startedAt = performance.now();
  rmSync(outfile, { force: true });
  const command = [
    process.execPath,
    ...options,
    ...commitOption(),
    ...(target ? [`--target=${target}`] : []),
    ...entryPoints(),
  ];
  const build = Bun.spawn([...command, "--outfile", outfile], { cwd: root, stdout: "pipe", stderr: "pipe" });
  const said = await Promise.all([new Response(build.stdout).text(), new Response(build.stderr).text()]);
  const size = statSync(outfile, { throwIfNoEntry: false })?.size ?? 0;
  if ((await build.exited) !== 0 || size === 0) throw new Error(`${outfile} was not built:\n${said.join("")}`);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stdout.write(`${outfile.slice(root.length + 1)}  ${Math.round(size / 2 ** 20)} MiB  ${seconds} s\n`);
}

async function compileAll(): Promise<void> {
  for (const [target, name] of Object.entries(releases)) await compile(join(dist, name), target);
  const sums = [...Object.values(releases), sbom].map((name) => {
    const hash = createHash("sha256").update(readFileSync(join(dist, name)));
    return `${hash.digest("hex")}  ${name}\n`;
  });
  writeFileSync(join(dist, "SHA256SUMS"), sums.join(""));
}

async function main(): Promise<void> {
  mkdirSync(dist, { recursive: true });
  await buildWeb();
  await describe();
  if (process.argv.includes("--all")) await compileAll();
  else await compile(join(dist, process.platform === "win32" ? "postrider.exe" : "postrider"));
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
