import type { Style } from "./style.ts";

const gap = "  ";

/**
 * Rows under a header, each column as wide as its widest cell. The cells have no style marks yet.
 * @param mark adds them to a cell of a column
 */
export function formatTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  style: Style,
  mark: (cell: string, column: number) => string = (cell) => cell,
): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)));
  const line = (cells: readonly string[], marked: typeof mark) => {
    const last = cells.findLastIndex((cell) => cell !== "");
    return cells
      .slice(0, last + 1)
      .map(
        (cell, column) => marked(cell, column) + " ".repeat(column === last ? 0 : (widths[column] ?? 0) - cell.length),
      )
      .join(gap);
  };
  return [style.faint(line(head, (cell) => cell)), ...rows.map((row) => line(row, mark))].join("\n");
}

/** What an empty page says in place of a table. @param none where the list as a whole is empty */
export const emptyPage = (total: number, none: string): string =>
  total === 0 ? none : "This page is behind the last one.";

/** Names and values, one pair per line. */
export function formatPairs(pairs: readonly (readonly [name: string, value: string])[], style: Style): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${style.faint(name.padEnd(width))}${gap}${value}`.trimEnd()).join("\n");
}

/**
 * Text from other people, as one line of a table: tenants choose their own names, and control characters in them would move
 * the cursor of the operator's terminal.
 */
export const plainText = (text: string) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?");
