import { expect, test } from "bun:test";
import { commands } from "../../src/cli/commands.ts";
import { loadCommands, wordsLoadedAlone } from "../../src/cli/load-commands.ts";

test.each(wordsLoadedAlone)("%s by itself is the same as among all commands", async (word) => {
  const listed = commands.filter(({ words }) => words[0] === word);
  expect(listed).not.toEqual([]);
  expect(await loadCommands(word)).toEqual(listed);
});

test.each([null, "tenant", "lisen", "toString"])("where any may be meant, there are all: %p", async (word) => {
  expect(await loadCommands(word)).toBe(commands);
});
