/**
 * The mark that a move to another place leaves in a database. Its table exists only then, so it is in no migration.
 *
 *   leaving   it is being copied, or was until somebody stopped that
 *   left      the copy is complete: what is here is of the past
 *   arriving  it is the copy, and not yet complete
 */
export interface MoveMark {
  readonly move: string;
  readonly role: "leaving" | "left" | "arriving";
  /** The other place. */
  readonly place: string;
}
