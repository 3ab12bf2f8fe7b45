import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { expectedSections } from "../api/expected-sections.ts";
import { documentAt, documents, headingsOf, root, sectionOf } from "./documents.ts";

/**
 * Comments, and names of tests, say where a rule stands: (specification, "Errors"), (rules, section 8, "Signature"),
 * (hazards, sections 1.1 and 1.2), (payments, "What is promised"). Each of these sections exists.
 */
const citable = [...documents.keys()].flatMap((path) => /^docs\/(\w+)\.md$/.exec(path)?.[1] ?? []);
const word = `\\b(${citable.map((name) => `[${name[0]?.toUpperCase()}${name[0]}]${name.slice(1)}`).join("|")})`;
const quoted = `"[A-Z][^"\\n]*"`;
const byNumber = new RegExp(`${word}, sections? (\\d[\\d.]*(?:(?:, and |, | and )\\d[\\d.]*)*)((?:, ${quoted})?)`, "g");
const byHeading = new RegExp(`${word}, (${quoted}(?:(?:, and |, | and )${quoted})*)`, "g");

interface Citation {
  readonly document: string;
  readonly section: string | null;
  readonly heading: string | null;
}

/** As it reads: comments without their margins, so that a citation may go over the end of a line. */
const asRead = (text: string) => text.replaceAll(/\s*\n\s*(?:\*|\/\/|--)?\s*/g, " ");

function citationsIn(text: string): Citation[] {
  const read = asRead(text);
  const numbered = [...read.matchAll(byNumber)].flatMap(([, name = "", numbers = "", heading = ""]) =>
    (numbers.match(/\d+(?:\.\d+)*/g) ?? []).map((section) => ({
      document: name.toLowerCase(),
      section,
      heading: /"(.*)"/.exec(heading)?.[1] ?? null,
    })),
  );
  const named = [...read.matchAll(byHeading)].flatMap(([, name = "", headings = ""]) =>
    [...headings.matchAll(/"([^"]+)"/g)].map(([, heading = ""]) => ({
      document: name.toLowerCase(),
      section: null,
      heading,
    })),
  );
  return [...numbered, ...named];
}

/** Whether a document has the section: `8` is the heading "8. Delivery", `1.4` is "1.4 Dialling what was checked". */
function isThere({ document, section, heading }: Citation): boolean {
  const text = documentAt(`docs/${document}.md`);
  const place = headingsOf(text).find(
    (one) => section === null || one.startsWith(`${section}. `) || one.startsWith(`${section} `),
  );
  if (place === undefined) return false;
  return heading === null || headingsOf(section === null ? text : sectionOf(text, place)).includes(heading);
}

const sources = [...new Glob("{src,web,test,drizzle,release}/**/*.{ts,tsx,css,sql}").scanSync(root)].sort();
const citations = sources.map((file) => [file, citationsIn(readFileSync(join(root, file), "utf8"))] as const);

describe("what comments cite", () => {
  test("is found", () => {
    expect(citationsIn('/** Rules, section 8, "Signature". */')).toEqual([
      { document: "rules", section: "8", heading: "Signature" },
    ]);
    expect(citationsIn('  // (hazards, sections 1.1\n  // and 3; specification, "Errors")')).toEqual([
      { document: "hazards", section: "1.1", heading: null },
      { document: "hazards", section: "3", heading: null },
      { document: "specification", section: null, heading: "Errors" },
    ]);
    expect(isThere({ document: "rules", section: "99", heading: null })).toBe(false);
    expect(isThere({ document: "rules", section: "7", heading: "Signature" })).toBe(false);
    expect(citations.flatMap(([, found]) => found).length).toBeGreaterThan(200);
  });

  test.each(citations.filter(([, found]) => found.length > 0))("in %s is there", (_, found) => {
    expect(found.filter((citation) => !isThere(citation))).toEqual([]);
  });

  test("has no place but the documents", () => {
    const elsewhere = /\b(?:decisions|hardening|architecture|spec), (?:sections?|rule) \d|\b(?:spec|decisions)\.md\b/i;
    expect(sources.filter((file) => elsewhere.test(asRead(readFileSync(join(root, file), "utf8"))))).toEqual([]);
  });
});

test.each(expectedSections)("%s, which a scenario proves, is a section", (name) => {
  const [, heading, number] = /^(?:spec: (.+)|rules (\d+))$/.exec(name) ?? [];
  const cited =
    number === undefined
      ? { document: "specification", section: null, heading: heading ?? "" }
      : { document: "rules", section: number, heading: null };
  expect(isThere(cited)).toBe(true);
});
