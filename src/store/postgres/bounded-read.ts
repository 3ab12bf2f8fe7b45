import { bytesBeside, type Step, type StepParams } from "../steps.ts";
import type { Pool, Value } from "./pool.ts";

/** How a row of such a read is matched to the keys that were asked for. */
interface Placed {
  /** The position of its key, from 1. */
  n: number;
  /** Total bytes of all rows up to and including this one. */
  through: number;
}

/**
 * The rows of a statement until they reach `$1::int` bytes, so that no answer is larger than the caller has room for. The
 * length of a value stored apart from its row (`octet_length`) is known without reading it.
 *
 * @param text gives `n`, and `size`: the bytes of a row's long values
 */
export const bounded = (text: string): string => `
  select * from (
    select *, (sum(size + ${bytesBeside}) over (order by n))::float8 as through from (${text}) found
  ) summed where through - size - ${bytesBeside} < $1::int order by n`;

/** Reads one step with a statement that is `bounded`. */
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
