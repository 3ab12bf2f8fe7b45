import { expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { createChangeFeed } from "../../src/store/change-feed.ts";

const change: Change = { kind: "session_ended", sessionId: "s1" };

test("the listener of the moment is told", () => {
  const feed = createChangeFeed();
  const told: [string, Change][] = [];
  feed.tell(change);
  feed.onChange((heard) => void told.push(["first", heard]));
  feed.tell(change);
  feed.onChange((heard) => void told.push(["second", heard]));
  feed.tell(change);
  expect(told).toEqual([
    ["first", change],
    ["second", change],
  ]);
});

test("what a listener throws is reported, and reaches nobody else", () => {
  const defect = new Error("a defect");
  const reported: unknown[] = [];
  const feed = createChangeFeed((error) => void reported.push(error));
  feed.onChange(() => {
    throw defect;
  });
  feed.tell(change);
  expect(reported).toEqual([defect]);
});
