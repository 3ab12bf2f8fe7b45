/**
 * A list that is read on demand, so that the code that writes it out holds only a part of it at a time. The verb that returns
 * it fixes which entries it has. Each is read as it stands when its turn comes; one that is gone by then, or no longer in the
 * requested state, is skipped. Nothing is held open in between: a list that is not read to its end needs no closing.
 */
export interface Cursor<Entry> {
  /**
   * The next entries: at least one, and no more once they add up to `bytes`; none at the end.
   * @throws unavailable; the same entries can be asked for again
   */
  next(bytes: number): Promise<readonly Entry[]>;
  /** True when there are no more; false when there may be. */
  readonly ended: boolean;
}
