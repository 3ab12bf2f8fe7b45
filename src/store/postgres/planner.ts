/**
 * Settings of every connection: everything is found by an index, whatever the server thinks of a table. A plan is kept for a
 * connection's life: one that was made while a table or a month's partition was empty would read all of it when it is full,
 * until it is analyzed; and with a partial index in reach the planner once walked all of it for each row.
 */
export const byIndexes: Readonly<Record<string, string>> = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  // Where a scan is left that has no index (of arrays, of one row), the plan looks dear, and compiling it would be.
  jit: "off",
};

/** And of those whose statements find every row by its key: planned once, whatever they are given. */
export const byKeys: Readonly<Record<string, string>> = { plan_cache_mode: "force_generic_plan" };
