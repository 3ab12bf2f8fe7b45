import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expectedSections } from "./expected-sections.ts";

/** As a row says it, and as a test outside of a table does: `provenSections.add("…").add("…")`. */
const inRow = /\bsection: "([^"]+)"/g;
const added = /\bprovenSections((?:\s*\.add\("[^"]+"\))+)/g;

function sectionsIn(text: string): string[] {
  const calls = [...text.matchAll(added)].flatMap(([, chain = ""]) => [...chain.matchAll(/"([^"]+)"/g)]);
  return [...text.matchAll(inRow), ...calls].map(([, section = ""]) => section);
}

/** The sections that rows name, by file. Read as text: test files do not share a registry, nor an order. */
const namedSections = new Map<string, string[]>(
  readdirSync(import.meta.dir)
    .filter((file) => file.endsWith(".test.ts") && file !== "sections.test.ts")
    .map((file) => [file, sectionsIn(readFileSync(join(import.meta.dir, file), "utf8"))]),
);

const proven = new Set([...namedSections.values()].flat());

test("there are rows to read", () => {
  expect(proven.size).toBeGreaterThan(10);
});

test.each(expectedSections)("%s is proven by a row", (section) => {
  expect(proven).toContain(section);
});

test.each([...namedSections])("%s names only sections that there are", (_, sections) => {
  expect(sections.filter((section) => !expectedSections.includes(section))).toEqual([]);
});
