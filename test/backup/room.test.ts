import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { checkRoom } from "../../src/backup/room.ts";

/** More than any disk has. */
const huge = 2 ** 70;

test.each([
  ["what is needed", huge, 0, /has \d+ MiB free, with \d+ MiB needed\. Try: /],
  ["what stays free", 0, huge, /has \d+ MiB free, with \d+ MiB kept free \(POSTRIDER_MIN_FREE_DISK\)\. Try: /],
  ["both", 2 ** 20, huge, /free, with 1 MiB needed and \d+ MiB kept free \(POSTRIDER_MIN_FREE_DISK\)\. Try: /],
])("a disk without room is told of with %s", (_, bytes, leaveFreeBytes, said) => {
  expect(() => checkRoom(tmpdir(), bytes, leaveFreeBytes)).toThrow(said);
});
