/**
 * Settings of every connection: everything is found through an index, whatever the server's statistics say. A plan is kept
 * for a connection's life: one made while a table or a month's partition was empty would read all of it when it is full,
 * until it is analyzed; and with a partial index in reach the planner once walked all of it for each row.
 */
export const byIndexes: Readonly<Record<string, string>> = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  // Where a scan without an index remains (of arrays, of one row), the plan looks expensive, and compiling it really would
  // be.
  jit: "off",
};

/** Further settings for connections whose statements find every row by its key: planned once, whatever their values. */
export const byKeys: Readonly<Record<string, string>> = { plan_cache_mode: "force_generic_plan" };
