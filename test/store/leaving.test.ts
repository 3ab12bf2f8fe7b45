import { expect, test } from "bun:test";
import { type Leaving, leavingMark } from "../../src/store/move/leaving.ts";
import type { MoveMark } from "../../src/store/move-mark.ts";

const decide = (role: MoveMark["role"] | null, more: Partial<Leaving>) =>
  leavingMark({
    mark: role && { move: "first", role, place: "there" },
    ...{ place: "here", to: "there", readiness: "empty", again: false, wayThere: "start there" },
    newMove: () => "second",
    ...more,
  });

test.each<[string, MoveMark["role"] | null, Partial<Leaving>, MoveMark]>([
  ["the first one", null, {}, { move: "second", role: "leaving", place: "there" }],
  ["one that goes on", "leaving", { readiness: "reserved" }, { move: "first", role: "leaving", place: "there" }],
  ["another after one that did not end", "leaving", { to: "else" }, { move: "second", role: "leaving", place: "else" }],
  ["one that lacks the last mark", "left", { readiness: "reserved" }, { move: "first", role: "left", place: "there" }],
  ["again to the same place", "left", { again: true }, { move: "second", role: "left", place: "there" }],
  ["again to another place", "left", { to: "else", again: true }, { move: "second", role: "left", place: "else" }],
])("a move marks its source: %s", (_, role, more, expected) => {
  expect(decide(role, more)).toEqual(expected);
});

test.each<[string, MoveMark["role"], Partial<Leaving>, RegExp]>([
  ["a copy that is not complete", "arriving", {}, /has not ended. Try: end that one first/],
  ["what was moved", "left", {}, /was moved to there already. Try: start there, or, if its data is lost, add --again/],
  ["what was moved, to another place", "left", { to: "else" }, /was moved to there already/],
  ["what was moved, to where it is", "left", { again: true, readiness: "taken" }, /there has something in it/],
])("a move does not begin with %s", (_, role, more, refusal) => {
  expect(() => decide(role, more)).toThrow(refusal);
});
