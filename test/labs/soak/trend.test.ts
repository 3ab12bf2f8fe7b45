import { expect, test } from "bun:test";
import { fitTrend, mediansOf } from "./trend.ts";

const line = (slope: number, noise: (i: number) => number) =>
  Array.from({ length: 100 }, (_, i) => ({ x: i, y: 7 + slope * i + noise(i) }));

test("the slope of a straight line is found without doubt", () => {
  const { slope, standardError } = fitTrend(line(0.5, () => 0));
  expect(slope).toBeCloseTo(0.5, 10);
  expect(standardError).toBeCloseTo(0, 10);
});

test("what goes up and down has no slope beyond its error", () => {
  const { slope, standardError } = fitTrend(line(0, (i) => (i % 7) * 3));
  expect(Math.abs(slope)).toBeLessThan(2 * standardError);
});

test("a slope stands out of the scatter", () => {
  const { slope, standardError } = fitTrend(line(0.5, (i) => (i % 7) * 3));
  expect(slope - 2 * standardError).toBeGreaterThan(0.3);
});

test("two points have no trend that one could be sure of", () => {
  expect(fitTrend(line(1, () => 0).slice(0, 2)).slope).toBeNaN();
});

test("each span counts with the median of its points", () => {
  const points = [1, 100, 2, 3, 900, 4].map((y, x) => ({ x, y }));
  expect(mediansOf(points, 3)).toEqual([
    { x: 1.5, y: 2 },
    { x: 4.5, y: 4 },
  ]);
});
