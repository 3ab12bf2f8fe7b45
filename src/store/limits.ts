/** How many occurrences one key may have within any window of time. */
export interface Limit {
  /** Of no other limit: with the key it is what occurrences are counted under. */
  readonly name: string;
  readonly most: number;
  readonly windowMs: number;
  /**
   * Keys that are remembered at least. Beyond, the one that was quiet for longest may be forgotten, so that strangers who
   * make up keys do not fill the memory.
   */
  readonly keys: number;
}

export interface Count {
  readonly limit: Limit;
  readonly key: string;
}

/** `by`: the limit that has no room. */
export type Turn = { ok: true } | { ok: false; retryAfterSeconds: number; by: Limit };

/**
 * Limits that hold for a caller whichever node it comes to, and are therefore where all nodes see them. What protects a
 * node itself, such as the room for bodies, is a `Limiter` of its own.
 *
 * A window slides: a fixed one would let twice the limit pass around its edge. What is counted need not outlive a restart.
 * A verb that fails is a `DomainError` of kind `unavailable`, as of `store.ts`: the caller is refused, and nothing counts.
 * Each verb is one step: no other comes between its look and its count, so who has to do both calls `take`.
 *
 * `test/contract/limits/` is this text as a suite.
 */
export interface Limits {
  /**
   * Counts one occurrence in each of `counts`, if all of them have room and so have those of `others`, which are only looked
   * at; otherwise none counts. Of several without room the first is told, `counts` before `others`.
   */
  take(counts: readonly Count[], others?: readonly Count[]): Promise<Turn>;
  /** Whether `take` would succeed, without counting. */
  peek(counts: readonly Count[]): Promise<Turn>;
  /** Takes back the latest occurrence of each: what was counted in advance turned out not to count. */
  giveBack(counts: readonly Count[]): Promise<void>;
}
