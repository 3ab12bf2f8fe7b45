import { expect, test } from "bun:test";
import { formatBytes } from "../../src/cli/bytes.ts";

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [12 * 2 ** 10, "12 KiB"],
  [51_200, "50 KiB"],
  [2 ** 20 - 6, "1 MiB"],
  [1.5 * 2 ** 20, "1.5 MiB"],
  [400 * 2 ** 20, "400 MiB"],
  [2 ** 31, "2 GiB"],
])("%d bytes read as %s", (bytes, words) => {
  expect(formatBytes(bytes)).toBe(words);
});
