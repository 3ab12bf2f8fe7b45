/**
 * Settings of connections whose statements find every row by keys, or walk an index. With a partial index in reach the
 * planner once walked all of it for each row; and it knows nothing of a queue that was empty when it last looked.
 */
export const byKeys: Readonly<Record<string, string>> = {
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  // Planned once, whatever they are given.
  plan_cache_mode: "force_generic_plan",
  // Where a scan is left that has no index (of arrays, of one row), the plan looks dear, and compiling it would be.
  jit: "off",
};
