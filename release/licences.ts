import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { distinct, folderOf, type LockedPackage, root } from "./lock.ts";

/** SPDX identifiers of what may be shipped under MIT: they ask for their notice and for nothing more. */
export const acceptedLicences: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "MIT-0",
  "Unlicense",
]);

/** Files that a licence asks to keep, also those about what a package has bundled itself. */
const noticeFile = /^(?:licen[cs]e|copying|notice)(?:\.\w+)?$|bundle\.js\.LICENSE\.txt$/i;

/** A package of the Apache licence that brings no text is under the common one, of which this is a copy. */
const apacheText = join(root, "node_modules", "prom-client", "LICENSE");

/** The runtime's package has no text either, and says nothing of the libraries that are linked into it. */
const runtimeNotice = `Bun itself is under the MIT licence, Copyright (c) Oven. It links libraries statically, among them
JavaScriptCore and WebKit (LGPL-2, source at https://github.com/oven-sh/webkit), BoringSSL, SQLite,
uSockets and uWebSockets; all of them, with their licences, are listed at
https://github.com/oven-sh/bun/blob/main/LICENSE.md`;

export interface Manifest {
  name: string;
  version: string;
  license?: string;
}

export const manifestOf = (one: LockedPackage): Manifest =>
  JSON.parse(readFileSync(join(folderOf(one), "package.json"), "utf8"));

/** The texts that come with a package. @throws Error when there is none, because then it may not be shipped */
export function noticesOf(one: LockedPackage): string[] {
  if (one.name === "bun") return [runtimeNotice];
  const folder = folderOf(one);
  // Of swagger-ui's bundles one is embedded.
  const names = readdirSync(folder).filter((name) => noticeFile.test(name) && !/es-bundle/.test(name));
  const paths = names.sort().map((name) => join(folder, name));
  if (paths.length === 0 && manifestOf(one).license === "Apache-2.0") paths.push(apacheText);
  if (paths.length === 0) throw new Error(`${one.name} has no text of its licence`);
  return paths.map((path) => readFileSync(path, "utf8").trim());
}

/** Postrider's own licence, and after it those of everything that is in the executable. */
export function writeLicences(shipped: readonly LockedPackage[]): string {
  const parts = distinct(shipped).map((one) => {
    const title = `${one.name} ${one.version} (${manifestOf(one).license})`;
    return [title, "-".repeat(title.length), "", ...noticesOf(one).flatMap((text) => [text, ""])].join("\n");
  });
  const own = readFileSync(join(root, "LICENSE"), "utf8").trim();
  return [own, "\nThe executable contains the following packages.\n", ...parts].join("\n");
}
