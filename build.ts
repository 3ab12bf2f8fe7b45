import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { compile, dist, prepare } from "./release/compile.ts";
import { executableName, targets } from "./release/targets.ts";

/** Builds the executable: `bun run build` for this machine, `bun run build:all` for every platform that is released. */
async function main(): Promise<void> {
  mkdirSync(dist, { recursive: true });
  await prepare();
  if (process.argv.includes("--all")) {
    for (const target of targets) await compile(join(dist, executableName(target)), target);
  } else await compile(join(dist, process.platform === "win32" ? "postrider.exe" : "postrider"));
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
});
