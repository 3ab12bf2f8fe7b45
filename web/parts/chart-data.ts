/** What a chart shows, before it is drawn. */
export type Tone = "delivered" | "failed" | "waiting" | "accent" | "soft";
/** `none`: counts something other than what is drawn, so it appears only as a figure and in the table. */
export type Shape = "bar" | "line" | "dashes" | "none";

export interface ChartSeries {
  readonly name: string;
  readonly tone: Tone;
  /** Bars are stacked, the first at the bottom. */
  readonly shape: Shape;
  /** One for each bucket; null: nothing to say. */
  readonly values: readonly (number | null)[];
  /** For all buckets together, as text. */
  readonly whole: string;
}

export interface ChartData {
  /** When each bucket begins, in ms. */
  readonly at: readonly number[];
  readonly bucketMs: number;
  readonly series: readonly ChartSeries[];
  /** The scale reaches at least this high, so that little does not look like much. */
  readonly least: number;
  /** Each step of the scale is ten times the one before: for values that are far apart. */
  readonly isLog?: boolean;
  /** A value as text: on the axis, and where there is more room. */
  readonly tick: (value: number) => string;
  readonly format: (value: number) => string;
  /** The chart in a sentence. */
  readonly summary: string;
  /** What the figures next to the names cover while no bucket is pointed at: "since 13:00". */
  readonly span: string;
}

/** The largest value and its place; null when nothing is above 0. */
export function peakOf(values: readonly (number | null)[]): { value: number; index: number } | null {
  let peak: { value: number; index: number } | null = null;
  values.forEach((value, index) => {
    if (value !== null && value > (peak?.value ?? 0)) peak = { value, index };
  });
  return peak;
}

/** Each column on top of those before it. */
export function stack(columns: readonly (readonly number[])[]): number[][] {
  const sums: number[][] = [];
  for (const column of columns) {
    const below = sums.at(-1);
    sums.push(column.map((value, i) => value + (below?.[i] ?? 0)));
  }
  return sums;
}

/** Points that have no neighbour to draw a line to. */
export const lonely = (values: readonly (number | null)[]): number[] =>
  values.flatMap((value, i) => {
    const hasNeighbour = (values[i - 1] ?? null) !== null || (values[i + 1] ?? null) !== null;
    return value === null || hasNeighbour ? [] : [i];
  });

/** The powers of ten around the values; the lowest is at least `lowestPower`, and there are at least two. */
export function decadesAround(min: number | null, max: number | null, least: number): [number, number] {
  const top = 10 ** Math.ceil(Math.log10(Math.max(max ?? 0, least)));
  const bottom = 10 ** Math.floor(Math.log10(Math.max(min ?? 0, lowestPower)));
  return [Math.min(bottom, top / 10), top];
}

/** A logarithm has no zero; values of zero are drawn down here. */
export const lowestPower = 0.1;
