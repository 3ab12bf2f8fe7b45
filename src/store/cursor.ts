/**
 * A list that is read as it is needed, so that whoever writes it out holds a part of it at a time. Which entries it has is
 * fixed with the verb that gives it; each is read as it stands when its turn comes, and one that is gone by then, or in
 * another state than the one that was asked for, is passed over. Nothing is held open meanwhile: a list that is not read
 * to its end needs no closing.
 */
export interface Cursor<Entry> {
  /**
   * The next entries: at least one, and no more after those that are together as large as `bytes`; none at the end.
   * @throws unavailable; the same entries can be asked for again
   */
  next(bytes: number): Promise<readonly Entry[]>;
  /** True when there are no more; false when there may be. */
  readonly ended: boolean;
}
