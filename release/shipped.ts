import { readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { bundleWeb } from "../web/build.ts";
import { folderOf, type LockedPackage, readLock, root } from "./lock.ts";

/** A worker is an entry point of its own: nothing imports it. */
export function entryPoints(): string[] {
  const source = join(root, "src");
  const workers = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith("-worker.ts"),
  );
  return ["main.ts", ...workers].map((name) => join(source, name));
}

/**
 * The packages of which something is in the executable: what the bundler reads for the program and for the dashboard, and
 * the runtime itself. Nothing is listed by hand, so that the list cannot drift from what is shipped.
 */
export async function findShipped(): Promise<LockedPackage[]> {
  const program = await Bun.build({ entrypoints: entryPoints(), target: "bun", metafile: true });
  const files = [program, ...(await bundleWeb())].flatMap(({ metafile }) => Object.keys(metafile?.inputs ?? {}));
  if (files.length === 0) throw new Error("The bundler does not say what it has read");
  const { packages } = readLock();
  // Longest first: a package within another one's folder is not that one.
  const folders = packages
    .map((one) => ({ one, folder: `${relative(root, folderOf(one))}/` }))
    .sort((a, b) => b.folder.length - a.folder.length);
  const found = new Set(packages.filter(({ name }) => name === "bun"));
  for (const file of files
    .map((path) => relative(root, join(root, path)))
    .filter((path) => path.includes("node_modules/"))) {
    const owner = folders.find(({ folder }) => file.startsWith(folder));
    if (!owner) throw new Error(`${file} is in the executable and in no package of bun.lock`);
    found.add(owner.one);
  }
  return [...found].sort((a, b) => (a.name < b.name ? -1 : 1));
}
