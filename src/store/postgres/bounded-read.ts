import { bytesBeside, type Step, type StepParams } from "../steps.ts";
import type { Pool, Value } from "./pool.ts";

/** How a row of such a read is found again among those that were asked for. */
interface Placed {
  /** Which of the keys it is of, from 1. */
  n: number;
  /** Bytes of all rows up to this one. */
  through: number;
}

/**
 * The rows of a statement until they are as large as `$1::int`, so that no answer is larger than whoever asked has room for.
 * How long a value is that lies apart from its row (`octet_length`) is known without reading it.
 *
 * @param text gives `n`, and `size`: the bytes of what is long in a row
 */
export const bounded = (text: string): string => `
  select * from (
    select *, (sum(size + ${bytesBeside}) over (order by n))::float8 as through from (${text}) found
  ) summed where through - size - ${bytesBeside} < $1::int order by n`;

/** Reads a step by a statement that is `bounded`. */
export async function readBounded<Row>(
  pool: Pick<Pool, "read">,
  text: string,
  { keys, bytes }: StepParams<unknown>,
  values: readonly Value[],
): Promise<Step<Row>> {
  const rows = await pool.read<Row & Placed>(text, [bytes, ...values]);
  const last = rows.at(-1);
  return { rows, taken: last && last.through >= bytes ? last.n : keys.length };
}
