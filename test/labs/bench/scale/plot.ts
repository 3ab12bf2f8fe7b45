import { series } from "./growth.ts";
import { count, type SizeResult } from "./report.ts";

const width = 860;
const height = 520;
const left = 70;
const right = 250;
const top = 46;
const bottom = 60;
const colours = [
  "#0072b2",
  "#56b4e9",
  "#d55e00",
  "#e69f00",
  "#009e73",
  "#cc79a7",
  "#333333",
  "#7f7f7f",
  "#8c564b",
  "#9467bd",
];
/** Between two labels, so that they can be read where lines end close together. */
const labelStep = 17;

/** How times grow with the history, as an SVG with both axes logarithmic: a line that is flat costs nothing more. */
export function plotGrowth(results: readonly SizeResult[], caption: string): string {
  const lines = series
    .filter(({ unit }) => unit === "ms")
    .map(({ name, read }) => ({ name, points: pointsOf(results, read) }))
    .filter(({ points }) => points.length > 0);
  const values = lines.flatMap(({ points }) => points.map(({ value }) => value));
  const sizes = results.map(({ events }) => events);
  const x = scale(decades(sizes), left, width - right);
  const y = scale(decades(values), height - bottom, top);
  const ticks = [
    ...x.ticks.map((events) => xTick(x.of(events), events)),
    ...y.ticks.map((value) => yTick(y.of(value), value)),
  ];
  const labelled = spread(lines.map(({ points }) => y.of(points.at(-1)?.value ?? 1)));
  const drawn = lines.map(({ name, points }, i) => {
    const colour = colours[i % colours.length] ?? "#000";
    const path = points.map(({ events, value }) => `${x.of(events).toFixed(1)},${y.of(value).toFixed(1)}`);
    const dots = path.map(
      (point) => `<circle cx="${point.split(",")[0]}" cy="${point.split(",")[1]}" r="3" fill="${colour}"/>`,
    );
    const label = `<text x="${width - right + 14}" y="${((labelled[i] ?? 0) + 4).toFixed(1)}" fill="${colour}">${escapeXml(name)} ${points.at(-1)?.value.toFixed(1)} ms</text>`;
    return `<polyline points="${path.join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join("")}${label}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="${left}" y="20" font-size="15">What a long history costs: milliseconds by events stored</text>`,
    `<text x="${left}" y="36" fill="#666">${escapeXml(caption)}</text>`,
    ...ticks,
    ...drawn,
    `</svg>`,
    "",
  ].join("\n");
}

function pointsOf(results: readonly SizeResult[], read: (result: SizeResult) => number | undefined) {
  return results.flatMap((result) => {
    const value = read(result);
    return value === undefined || !(value > 0) ? [] : [{ events: result.events, value }];
  });
}

/** The powers of ten around all values; two at least, so that there is an axis. */
function decades(values: readonly number[]): number[] {
  const from = Math.floor(Math.log10(Math.min(...values)));
  const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(...values))));
  return Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
}

function scale(ticks: readonly number[], start: number, end: number) {
  const first = Math.log10(ticks[0] ?? 1);
  const span = Math.log10(ticks.at(-1) ?? 10) - first;
  return { ticks, of: (value: number) => start + ((Math.log10(value) - first) / span) * (end - start) };
}

/** Positions of labels, moved down as far as they would overlap. */
function spread(positions: readonly number[]): number[] {
  const order = positions.map((at, i) => ({ at, i })).sort((a, b) => a.at - b.at);
  const placed: number[] = [];
  let free = 0;
  for (const { at, i } of order) {
    const y = Math.max(at, free);
    placed[i] = y;
    free = y + labelStep;
  }
  return placed;
}

const xTick = (at: number, events: number) =>
  `<line x1="${at}" y1="${top}" x2="${at}" y2="${height - bottom}" stroke="#ddd"/><text x="${at}" y="${height - bottom + 20}" text-anchor="middle">${count(events)}</text>`;

const yTick = (at: number, value: number) =>
  `<line x1="${left}" y1="${at}" x2="${width - right}" y2="${at}" stroke="#ddd"/><text x="${left - 8}" y="${at + 4}" text-anchor="end">${value} ms</text>`;

const escapeXml = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
