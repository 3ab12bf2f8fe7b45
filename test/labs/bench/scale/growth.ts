import { count, type SizeResult } from "./report.ts";

/** One cost over the sizes. */
export interface Series {
  name: string;
  unit: string;
  read(result: SizeResult): number | undefined;
}

const max = (values: readonly number[] | undefined) => values && Math.max(...values);
/** In less, too few events were ingested for a percentile. */
const shortestSeconds = 3;
const p99Of = (window: { seconds: number; ingestionP99Ms: number } | undefined) =>
  window && window.seconds >= shortestSeconds ? window.ingestionP99Ms : undefined;

/** What is shown over the sizes: times first, which the plot has. */
export const series: readonly Series[] = [
  { name: "first page (20), p99", unit: "ms", read: ({ reads }) => reads?.firstPage.p99Ms },
  { name: "first page (1,000), p50", unit: "ms", read: ({ reads }) => reads?.firstLongPage.p50Ms },
  { name: "page at half of all, p50", unit: "ms", read: ({ reads }) => reads?.deepPage.p50Ms },
  { name: "page in the middle, p50", unit: "ms", read: ({ reads }) => reads?.middlePage.p50Ms },
  { name: "one event, p99", unit: "ms", read: ({ reads }) => reads?.oneEvent.p99Ms },
  { name: "failure groups of a day, p99", unit: "ms", read: ({ reads }) => reads?.failures.p99Ms },
  { name: "search, p99", unit: "ms", read: ({ search }) => search?.list.p99Ms },
  { name: "restart, slowest", unit: "ms", read: ({ restart }) => max(restart?.firstDeliveryMs) },
  { name: "ingestion alone, p99", unit: "ms", read: ({ alone }) => alone?.ingestionP99Ms },
  { name: "… beside deep pages", unit: "ms", read: ({ pages }) => pages?.window.ingestionP99Ms },
  { name: "… beside searches", unit: "ms", read: ({ search }) => search?.window.ingestionP99Ms },
  { name: "… beside the replay", unit: "ms", read: ({ replay }) => p99Of(replay?.window) },
  { name: "… beside the deletion", unit: "ms", read: ({ erase }) => p99Of(erase?.window) },
  { name: "replayed", unit: "events/s", read: ({ replay }) => replay && replay.delivered / replay.window.seconds },
  { name: "erased", unit: "events/s", read: ({ erase }) => erase && erase.erased / erase.erasedSeconds },
  { name: "memory, highest", unit: "MB", read: highestMemory },
  { name: "database", unit: "MB", read: ({ databaseBytes }) => databaseBytes / 1e6 },
];

function highestMemory({ restart, alone, pages, search, replay, erase }: SizeResult): number | undefined {
  const windows = [alone, pages?.window, search?.window, replay?.window, erase?.window].flatMap(
    (window) => window?.peakBytes ?? [],
  );
  const peaks = restart ? [restart.peakBytes, ...windows] : windows;
  return peaks.length === 0 ? undefined : Math.max(...peaks) / 1e6;
}

const nameWidth = 28;
const cellWidth = 12;

export function growthTable(results: readonly SizeResult[]): string {
  const row = (name: string, cells: readonly string[]) =>
    `${name.padEnd(nameWidth)}${cells.map((cell) => cell.padStart(cellWidth)).join("")}`;
  const rows = series
    .filter(({ read }) => results.some((result) => read(result) !== undefined))
    .map(({ name, unit, read }) =>
      row(
        `${name} (${unit})`,
        results.map((result) => shown(read(result))),
      ),
    );
  return [
    row(
      "events",
      results.map(({ events }) => count(events)),
    ),
    ...rows,
  ].join("\n");
}

function shown(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "–";
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}
