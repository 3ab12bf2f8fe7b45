import { describe, expect, test } from "bun:test";
import { bytes, count, naira, percent, successWords } from "../../../web/format/number.ts";

describe("count", () => {
  test.each([
    [0, "0"],
    [999, "999"],
    [1000, "1\u202f000"],
    [18_204, "18\u202f204"],
    [25_000_000, "25\u202f000\u202f000"],
    [-1234, "-1\u202f234"],
    [1234.5678, "1\u202f234.5678"],
  ])("%p is %p", (n, text) => {
    expect(count(n)).toBe(text);
  });
});

describe("percent", () => {
  test.each([
    [997, 1000, "99.7 %"],
    [1, 3, "33.3 %"],
    [1, 2, "50 %"],
    [18_204, 18_204, "100 %"],
    [0, 5, "0 %"],
    [0, 0, "–"],
  ])("%p of %p is %p", (part, whole, text) => {
    expect(percent(part, whole)).toBe(text);
  });

  test.each([
    [9_999, 10_000, "> 99.9 %"],
    [9_999_999, 10_000_000, "> 99.9 %"],
    [9_994, 10_000, "99.9 %"],
    [9_995, 10_000, "> 99.9 %"],
  ])("%p of %p is not all of it: %p", (part, whole, text) => {
    expect(percent(part, whole)).toBe(text);
  });

  test.each([
    [1, 10_000_000, "< 0.1 %"],
    [4, 10_000, "< 0.1 %"],
    [5, 10_000, "0.1 %"],
  ])("%p of %p is not nothing: %p", (part, whole, text) => {
    expect(percent(part, whole)).toBe(text);
  });
});

describe("bytes", () => {
  test.each([
    [0, "0 B"],
    [512, "512 B"],
    [999, "999 B"],
    [1000, "1 KB"],
    [1234, "1.2 KB"],
    [9_960, "10 KB"],
    [262_144, "262 KB"],
    [999_499, "999 KB"],
    [999_500, "1 MB"],
    [5_242_880, "5.2 MB"],
    [1_500_000_000, "1.5 GB"],
    [2e12, "2 TB"],
    [5e15, "5000 TB"],
  ])("%p is %p", (n, text) => {
    expect(bytes(n)).toBe(text);
  });
});

describe("naira", () => {
  test.each([
    [0, "NGN 0.00"],
    [5, "NGN 0.05"],
    [10_000, "NGN 100.00"],
    [150_000, "NGN 1\u202f500.00"],
    [123_456_789, "NGN 1\u202f234\u202f567.89"],
    [-150_050, "-NGN 1\u202f500.50"],
  ])("%p kobo are %p", (kobo, text) => {
    expect(naira(kobo)).toBe(text);
  });
});

describe("the share of success", () => {
  test.each([
    [3, 4, 0, "75 % success"],
    [200, 200, 200, "100 % of those finished"],
    [0, 2, 0, "0 % success"],
  ])("of %d delivered and %d finished, with %d retried, is %s", (delivered, ended, retried, text) => {
    expect(successWords(delivered, ended, retried)).toBe(text);
  });
});
