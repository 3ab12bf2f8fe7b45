import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expectedSections } from "./expected-sections.ts";

/** The sections that rows name, by file. Read as text: test files do not share a registry, nor an order. */
const namedSections = new Map<string, string[]>(
  readdirSync(import.meta.dir)
    .filter((file) => file.endsWith(".test.ts") && file !== "sections.test.ts")
    .map((file) => {
      const text = readFileSync(join(import.meta.dir, file), "utf8");
      return [file, [...text.matchAll(/\bsection: "([^"]+)"/g)].map(([, section = ""]) => section)];
    }),
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
