import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { failureCodes } from "../../src/domain/failure.ts";
import { refusalCodes } from "../../src/http/refusal-codes.ts";

const src = join(import.meta.dir, "../../src");

/** Words in the argument list that begins at `start`, as codes look: two words at least, or one of the few with one. */
function codesIn(text: string, start: number): string[] {
  let depth = 1;
  let end = start;
  while (depth > 0 && end < text.length) {
    const character = text[end];
    if (character === '"' || character === "`") end = text.indexOf(character, end + 1);
    else if (character === "(") depth += 1;
    else if (character === ")") depth -= 1;
    end += 1;
  }
  return [...text.slice(start, end).matchAll(/"([a-z]+(?:_[a-z\d]+)+|busy)"/g)].map(([, code = ""]) => code);
}

test("every code that the sources can answer with has a counter from the start", () => {
  const found = new Set<string>();
  for (const file of new Glob("**/*.ts").scanSync(src)) {
    // Failures of deliveries have codes of their own, which examples show. Of the commands, those that hand a server over answer.
    if ((file.startsWith("cli/") && !file.startsWith("cli/success")) || file === "domain/failure.ts") continue;
    const text = readFileSync(join(src, file), "utf8");
    for (const { index, 0: call } of text.matchAll(
      /\b(?:unavailable|invalid|invalidBody|notFound|rateLimited)\(|\binvalidField\([^,]*,/g,
    )) {
      for (const code of codesIn(text, index + call.length)) found.add(code);
    }
    for (const [, code = ""] of text.matchAll(/code: "([a-z_]+)"/g)) {
      if (!(code in failureCodes)) found.add(code);
    }
  }
  expect(found.size).toBeGreaterThan(40);
  expect([...found].filter((code) => !refusalCodes.includes(code))).toEqual([]);
});
