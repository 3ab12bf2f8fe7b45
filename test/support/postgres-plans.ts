import type { Pool } from "../../src/store/postgres/pool.ts";

/** The plan for any parameters, as if tables were too large to be scanned. @param pool with one connection */
export async function planOf(pool: Pool, text: string): Promise<string> {
  for (const setting of ["enable_seqscan = off", "plan_cache_mode = force_generic_plan"])
    await pool.write(`set ${setting}`);
  await pool.write(`prepare planned as ${text}`);
  const parameters = new Set(text.match(/\$\d+/g)).size;
  const values = parameters === 0 ? "" : `(${Array.from({ length: parameters }, () => "null").join(", ")})`;
  const rows = await pool.read<Record<string, string>>(`explain (costs off) execute planned${values}`);
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}
