/** Whether there is room for more; the opener of the store decides. */
export interface Growth {
  /**
   * When false, the store takes on nothing that it can do without: no events are accepted or replayed, and no response
   * bodies are kept. What was accepted before is still delivered.
   */
  mayGrow(): boolean;
}
