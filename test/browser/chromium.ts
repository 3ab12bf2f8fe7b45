import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { brotliDecompressSync, createBrotliDecompress } from "node:zlib";
import type { LaunchOptions } from "playwright-core";
import { version } from "../../node_modules/@sparticuz/chromium/package.json";

/**
 * The browser of the tests: on Linux x64 the Chromium that `@sparticuz/chromium` carries, so that a checkout needs nothing
 * else; anywhere else an installed Chrome.
 *
 * Of the package only its archives are used. Its own `executablePath()` unpacks into the common temporary folder and takes
 * what it finds there, be it of another version, of another user, or half written by a run beside this one.
 */

const modules = join(import.meta.dir, "../../node_modules");
const archives = join(modules, "@sparticuz/chromium/bin");
const unpacked = join(modules, ".cache", `chromium-${version}`);

/** `--no-sandbox`: root, as which containers run, may not have it. The `args` of the package break a second context. */
const args = ["--no-sandbox"];

/** Whether the browser comes with the package, so that there is no reason for which it might be missing. */
export const isCarried = process.platform === "linux" && process.arch === "x64";

export async function findChromium(): Promise<LaunchOptions> {
  if (!isCarried) return { channel: "chrome" };
  if (!existsSync(unpacked)) await unpack();
  const executablePath = join(unpacked, "chromium");
  const env = { ...process.env, FONTCONFIG_FILE: join(unpacked, "fonts.conf") };
  if (starts(executablePath, env)) return { executablePath, args, env };
  // The machine lacks NSS, NSPR or Expat, as slim containers do.
  return { executablePath, args, env: { ...env, LD_LIBRARY_PATH: join(unpacked, "lib") } };
}

const starts = (executablePath: string, env: NodeJS.ProcessEnv) =>
  Bun.spawnSync([executablePath, "--version"], { env, stdout: "ignore", stderr: "ignore" }).success;

/** 209 MB in about two seconds, once for each version. Others see all of it or nothing. */
async function unpack(): Promise<void> {
  await mkdir(join(unpacked, ".."), { recursive: true });
  const folder = await mkdtemp(`${unpacked}-`);
  try {
    await Promise.all([
      unpackExecutable("chromium.br", join(folder, "chromium")),
      unpackFolder("al2023.tar.br", folder),
      unpackFolder("fonts.tar.br", folder),
    ]);
    await writeFile(join(folder, "fonts.conf"), fontSettings);
    await rename(folder, unpacked);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    if (!existsSync(unpacked)) throw error;
  }
}

async function unpackExecutable(name: string, path: string): Promise<void> {
  const decompress = createBrotliDecompress({ chunkSize: 2 ** 21 });
  await pipeline(createReadStream(join(archives, name)), decompress, createWriteStream(path, { mode: 0o755 }));
}

async function unpackFolder(name: string, folder: string): Promise<void> {
  const tar = brotliDecompressSync(await readFile(join(archives, name)));
  await new Bun.Archive(tar).extract(folder);
}

/** The fonts of the machine, and the one of the package where it has none. */
const fontSettings = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>${join(unpacked, "fonts")}</dir>
  <cachedir>${join(unpacked, "font-cache")}</cachedir>
</fontconfig>
`;
