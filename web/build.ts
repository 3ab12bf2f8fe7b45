import { mkdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";

/**
 * Bundles the dashboard into `dist/web`: a page, and in `assets/` a script and a style whose names hold a hash of their
 * content, so that browsers may keep them for ever. They are stored as gzip under those names, because that is how every
 * browser takes them, and compressing them on each machine at each start would cost more than the start.
 */

const root = join(import.meta.dir, "..");
const out = join(root, "dist", "web");

/** What a visitor on a slow line waits for, in bytes: page, script and style as they are sent. */
const largestWeight = 120_000;

export async function buildWeb(): Promise<void> {
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, "main.tsx")],
    target: "browser",
    minify: true,
    naming: "postrider-[hash].[ext]",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const nameOf = (extension: string) => {
    const found = outputs.find(({ path }) => path.endsWith(extension));
    if (!found) throw new Error(`The dashboard has no ${extension}`);
    return basename(found.path);
  };
  const template = await Bun.file(join(import.meta.dir, "index.html")).text();
  const page = template.replace("{{style}}", nameOf(".css")).replace("{{script}}", nameOf(".js"));

  await rm(out, { recursive: true, force: true });
  await mkdir(join(out, "assets"), { recursive: true });
  await Bun.write(join(out, "index.html"), page);
  let weight = Buffer.byteLength(page);
  for (const output of outputs) {
    const packed = gzipSync(await output.arrayBuffer(), { level: 9 });
    await Bun.write(join(out, "assets", basename(output.path)), packed);
    weight += packed.length;
  }
  process.stdout.write(`dist/web  ${(weight / 1000).toFixed(1)} KB compressed\n`);
  if (weight > largestWeight)
    throw new Error(`The dashboard weighs ${weight} bytes, and ${largestWeight} is the limit`);
}

if (import.meta.main) {
  await buildWeb().catch((error: unknown) => {
    process.stderr.write(`${error instanceof AggregateError ? error.errors.join("\n") : error}\n`);
    process.exitCode = 1;
  });
}
