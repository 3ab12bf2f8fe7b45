import { addStored, type Histogram, writeHistogram } from "../latency.ts";
import type { Row, Table } from "./tables.ts";

export const hasLatencies = ({ name }: Table): boolean => name === "stat" || name === "webhook_stat";

/** Several nodes may have counted the same minute; this merges their histograms, which come one per line. */
export function mergeLatencies({ columns }: Table, rows: readonly Row[]): Row[] {
  const place = columns.findIndex(({ name }) => name === "latency");
  return rows.map((row) => {
    const stored = String(row[place]);
    if (!stored.includes("\n")) return row;
    const sum: Histogram = [];
    for (const line of stored.split("\n")) addStored(line, sum);
    return row.with(place, writeHistogram(sum));
  });
}
