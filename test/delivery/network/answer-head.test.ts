import { expect, test } from "bun:test";
import { answerHeadOf } from "../../../src/delivery/network/answer-head.ts";

const long = "x".repeat(2000);

test.each([
  ["none", [], { headers: [], isCut: false }],
  [
    "two of one name, in their order",
    ["A", "1", "a", "2"],
    {
      headers: [
        ["A", "1"],
        ["a", "2"],
      ],
      isCut: false,
    },
  ],
  [
    "as many as have 4,096 characters",
    ["ab", long, "c", `${long}${"y".repeat(93)}`],
    {
      headers: [
        ["ab", long],
        ["c", `${long}${"y".repeat(93)}`],
      ],
      isCut: false,
    },
  ],
  [
    "whole ones only",
    ["ab", long, "c", `${long}${"y".repeat(94)}`, "d", "1"],
    { headers: [["ab", long]], isCut: true },
  ],
])("of the headers of an answer are kept: %s", (_, rawHeaders, kept) => {
  expect<unknown>(answerHeadOf(rawHeaders, "192.0.2.7")).toEqual({ address: "192.0.2.7", ...kept });
});

test("of a connection that has ended nobody knows the address", () => {
  expect(answerHeadOf([], undefined).address).toBeNull();
});
