import { expect, test } from "bun:test";
import { shellWord } from "../../src/lib/shell-word.ts";

test.each([
  ["/var/lib/postrider", "/var/lib/postrider"],
  ["s3://backups/postrider", "s3://backups/postrider"],
  ["127.0.0.1/32,10.0.0.0/8", "127.0.0.1/32,10.0.0.0/8"],
  ["0 3 * * *", "'0 3 * * *'"],
  ["it's", "'it'\\''s'"],
  ["$HOME", "'$HOME'"],
  ["", "''"],
])("%s is %s to a shell", (text, word) => {
  expect(shellWord(text)).toBe(word);
});
