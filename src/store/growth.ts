/** Whether there is room for more; whoever opens the store knows. */
export interface Growth {
  /**
   * False: the store takes on nothing that can be done without. No events are accepted or replayed, and no bodies of answers
   * are kept; what was accepted before goes on.
   */
  mayGrow(): boolean;
}
