import type { Style } from "./style.ts";

const gap = "  ";

/** Rows under a head, each column as wide as its widest cell. Cells have no marks yet. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[], style: Style): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join(gap)
      .trimEnd();
  return [style.faint(line(head)), ...rows.map(line)].join("\n");
}

/** Names and values, one pair a line. */
export function formatPairs(pairs: readonly (readonly [name: string, value: string])[], style: Style): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${style.faint(name.padEnd(width))}${gap}${value}`.trimEnd()).join("\n");
}

/**
 * Text of others, as one line of a table: names of tenants are their own, and control characters among them would move
 * the cursor of the operator's terminal.
 */
export const plainText = (text: string) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?");
