import { StartupError } from "../../domain/errors.ts";
import type { MoveMark } from "../move-mark.ts";
import type { Readiness } from "./tables.ts";

export interface Leaving {
  /** What is at the source so far. */
  readonly mark: MoveMark | null;
  readonly place: string;
  readonly to: string;
  /** Of the target, for the move of that mark. */
  readonly readiness: Readiness;
  /** See `Source.leave`. */
  readonly again: boolean;
  /** How a server is started where the data was moved to, as the beginning of a sentence's remedy. */
  readonly wayThere: string;
  newMove(): string;
}

/** The mark that the source of a move is to have; the same one if the move goes on. @throws StartupError when there can be none */
export function leavingMark({ mark, place, to, readiness, again, wayThere, newMove }: Leaving): MoveMark {
  if (mark?.role === "arriving") {
    throw new StartupError(`The move to ${place} from ${mark.place} has not ended. Try: end that one first.`);
  }
  const wasLeft = mark?.role === "left";
  if (mark?.place === to && (!wasLeft || readiness === "reserved")) return mark;
  if (wasLeft && !again) {
    throw new StartupError(
      `The data of ${place} was moved to ${mark.place} already. Try: ${wayThere}, or, if its data is lost, add --again.`,
    );
  }
  // The mark is all that says where the data is, so it stays until the new place is known to take it.
  if (wasLeft && readiness !== "empty") throw notEmpty(to);
  // What was left stays so: no server may start on it, even if this move does not end.
  return { move: newMove(), role: wasLeft ? "left" : "leaving", place: to };
}

export const notEmpty = (place: string) =>
  new StartupError(
    `${place} has something in it that is not of this move. Try: name an empty place; what is there is unchanged.`,
  );
