/** When a change is made. */
export interface Moment {
  /** The wall clock. */
  readonly now: number;
  /** As `now`, but never before that of an earlier change: for what rows are compared by. */
  readonly orderedNow: number;
}
