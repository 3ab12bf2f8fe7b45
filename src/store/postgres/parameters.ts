/**
 * Values in the forms that Bun's client handles fast. An array goes as text with a cast (`$1::bigint[]`); many byte strings
 * go as one `bytea` with the start and length of each, at half the price of a `bytea[]`.
 */

/** For `$n::bigint[]`, `$n::text[]` and the like. */
export const arrayText = (list: readonly (number | string | null)[]): string =>
  `{${list.map((one) => (typeof one === "string" ? quote(one) : (one ?? "null"))).join(",")}}`;

const quote = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;

/** Whether a text has the character U+0000, which none in PostgreSQL can have: there is nothing to be found by it. */
export const hasZero = (values: readonly unknown[]): boolean =>
  values.some((value) => typeof value === "string" && value.includes("\0"));

/** Parses an array that the server wrote as text. */
export const numbersOf = (text: string): number[] => (text === "{}" ? [] : text.slice(1, -1).split(",").map(Number));

export interface PackedBytes {
  readonly bytes: Uint8Array;
  /** One per byte string, as SQL's `substring` counts: from 1. For `$n::int[]`. */
  readonly starts: string;
  readonly lengths: string;
}

/** In SQL: `substring($1::bytea from start for length)` over `unnest($2::int[], $3::int[])`. */
export function packBytes(list: readonly Uint8Array[]): PackedBytes {
  const bytes = new Uint8Array(list.reduce((sum, one) => sum + one.length, 0));
  const starts: number[] = [];
  let at = 0;
  for (const one of list) {
    bytes.set(one, at);
    starts.push(at + 1);
    at += one.length;
  }
  return { bytes, starts: arrayText(starts), lengths: arrayText(list.map((one) => one.length)) };
}
