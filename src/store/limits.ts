/** How many occurrences one key may have within any window of time. */
export interface Limit {
  /** Unique among all limits: occurrences are counted under the name and the key. */
  readonly name: string;
  readonly most: number;
  readonly windowMs: number;
  /**
   * How many keys are remembered at least. Beyond that, the key that has been quiet for longest may be forgotten, so that
   * strangers who make up keys cannot fill the memory.
   */
  readonly keys: number;
}

export interface Count {
  readonly limit: Limit;
  readonly key: string;
}

/** `by`: the limit that was reached. */
export type Turn = { ok: true } | { ok: false; retryAfterSeconds: number; by: Limit };

/**
 * Limits that apply to a caller whichever node it reaches, so they are kept where all nodes see them. What protects a node
 * itself, such as the memory for request bodies, has its own `Limiter`.
 *
 * Windows slide: a fixed one would let twice the limit through around its edge. Counts need not survive a restart.
 * A verb that fails throws a `DomainError` of kind `unavailable`, as in `store.ts`: the caller is refused, and nothing counts.
 * Each verb is atomic: nothing comes between its check and its count, so a caller that needs both calls `take`.
 *
 * `test/contract/limits/` is this text as a suite.
 */
export interface Limits {
  /**
   * Counts one occurrence in each of `counts` if all of them have room and so do `others`, which are only checked; otherwise
   * counts nothing. If several have no room, the first is reported, `counts` before `others`.
   */
  take(counts: readonly Count[], others?: readonly Count[]): Promise<Turn>;
  /** Whether `take` would succeed, without counting. */
  peek(counts: readonly Count[]): Promise<Turn>;
  /** Takes back the latest occurrence of each, when what was counted in advance turned out not to count. */
  giveBack(counts: readonly Count[]): Promise<void>;
}
