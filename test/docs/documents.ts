import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const root = resolve(import.meta.dir, "../..");

/** What people read, by its path in the repository. */
export const documents: ReadonlyMap<string, string> = new Map(
  ["README.md", "CONTRIBUTING.md", ...readdirSync(join(root, "docs")).map((file) => `docs/${file}`)]
    .filter((path) => path.endsWith(".md"))
    .map((path) => [path, readFileSync(join(root, path), "utf8")]),
);

export function documentAt(path: string): string {
  const text = documents.get(path);
  if (text === undefined) throw new Error(`There is no document ${path}`);
  return text;
}

/** The text between `<!-- name -->` and `<!-- /name -->`, which stands in one document alone. */
export function marked(name: string): string {
  const found = [...documents.values()].flatMap(
    (text) => text.split(`<!-- ${name} -->`)[1]?.split(`<!-- /${name} -->`)[0]?.trim() ?? [],
  );
  if (found.length !== 1) throw new Error(`${found.length} documents have "${name}"`);
  return found[0] ?? "";
}

/** The code block under `<!-- example: name -->`, as written. */
export function example(name: string): string {
  const found = [...documents.values()].flatMap(
    (text) => text.split(`<!-- example: ${name} -->`)[1]?.match(/```\w+\n([\s\S]*?)```/)?.[1] ?? [],
  );
  if (found.length !== 1) throw new Error(`${found.length} documents have an example "${name}"`);
  return found[0] ?? "";
}

/** Without code blocks, in which nothing is a heading or a link. */
export const prose = (text: string): string => text.replaceAll(/^```[\s\S]*?^```$/gm, "");

/** Headings as they read: without marks of code and emphasis. */
export const headingsOf = (text: string): string[] =>
  [...prose(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => heading.replaceAll(/[`*]/g, ""));

/** What a link to a heading ends with, as GitHub makes it. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\- _]/gu, "")
    .replaceAll(" ", "-");

/** One section of a document: from its heading to the next one of the same level or above. */
export function sectionOf(text: string, heading: string): string {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => /^#{1,6} /.test(line) && line.replace(/^#+ /, "") === heading);
  if (start < 0) throw new Error(`There is no section "${heading}"`);
  const level = /^#+/.exec(lines[start] ?? "")?.[0].length ?? 1;
  const isEnd = (line: string) => new RegExp(`^#{1,${level}} `).test(line);
  const length = lines.slice(start + 1).findIndex(isEnd);
  return lines.slice(start, length < 0 ? undefined : start + 1 + length).join("\n");
}
