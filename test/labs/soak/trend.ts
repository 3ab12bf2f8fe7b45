/** A straight line through points, by least squares. */
export interface Trend {
  slope: number;
  /** Of the slope: it lies within twice that in 19 of 20 cases, if the points scatter independently. */
  standardError: number;
}

export interface Point {
  x: number;
  y: number;
}

/** NaN for fewer than three points, or when all have one x. */
export function fitTrend(points: readonly Point[]): Trend {
  const n = points.length;
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / n;
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / n;
  const sxx = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0);
  if (n < 3 || sxx === 0) return { slope: Number.NaN, standardError: Number.NaN };
  const slope = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / sxx;
  const residual = points.reduce((sum, { x, y }) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0);
  return { slope, standardError: Math.sqrt(residual / (n - 2) / sxx) };
}

/**
 * The median of the points in each span of x. Resident memory goes up and down with every collection: neighbouring samples
 * are not independent, and a line through all of them would look surer than it is.
 */
export function mediansOf(points: readonly Point[], span: number): Point[] {
  const groups = new Map<number, Point[]>();
  for (const point of points) {
    const group = Math.floor(point.x / span);
    groups.set(group, [...(groups.get(group) ?? []), point]);
  }
  return [...groups].map(([group, members]) => {
    const sorted = members.map(({ y }) => y).sort((a, b) => a - b);
    return { x: (group + 0.5) * span, y: sorted[sorted.length >> 1] ?? Number.NaN };
  });
}
