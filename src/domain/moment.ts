/** When a change is made. */
export interface Moment {
  /** The wall clock. */
  readonly now: number;
  /** Like `now`, but never before that of an earlier change: for the values that rows are compared by. */
  readonly orderedNow: number;
}
