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

/**
 * Why no server may use a database with this mark, with what to do; null: its data is here.
 * @param database its name in the sentence
 * @param wayThere how a server is started on the place that has the data
 */
export function refusalOf(mark: MoveMark | null, database: string, wayThere: (place: string) => string): string | null {
  switch (mark?.role) {
    case undefined:
    case "leaving":
      return null;
    case "left":
      return `The data of ${database} was moved to ${mark.place}, and what is left here is no longer kept up to date. Try: ${wayThere(mark.place)}.`;
    case "arriving":
      return `The move to ${database} from ${mark.place} has not ended. Try: run the same postrider move again to continue.`;
  }
}
