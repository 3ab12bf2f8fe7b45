import { unavailable } from "../domain/errors.ts";

/** Memory that what is under way may take, together and for each account. */
export interface Room {
  /** @param owner an account's id; undefined for whoever has none: they share one share between them */
  enter(owner: string | undefined): Place;
}

/** What one request has of a room. */
export interface Place {
  /**
   * Makes room for so many bytes more.
   * @throws unavailable with the room's code; what the request has stays
   */
  grow(bytes: number): void;
  /** Gives all of it back; nothing may grow after that. */
  leave(): void;
}

export interface RoomOptions {
  /** What is counted, for the sentence of a refusal: "bodies". */
  what: string;
  code: string;
  allBytes: number;
  /** The share of one account. */
  ofOneBytes: number;
  /** What a request has up to here is not counted and always has room. */
  smallEnoughBytes: number;
}

/** Counts what is taken, in all and by account, and asks whoever wants more to come back. */
export function createRoom({ what, code, allBytes, ofOneBytes, smallEnoughBytes }: RoomOptions): Room {
  let taken = 0;
  const takenBy = new Map<string, number>();

  function move(owner: string, bytes: number): void {
    taken += bytes;
    const rest = (takenBy.get(owner) ?? 0) + bytes;
    if (rest > 0) takenBy.set(owner, rest);
    else takenBy.delete(owner);
  }

  const tooMany = (whose: string, bytes: number) =>
    unavailable(`At most ${bytes / 2 ** 20} MiB of ${what} may be in flight for ${whose}; retry the request.`, code);

  return {
    enter(owner = "") {
      let size = 0;
      let counted = 0;
      return {
        grow(bytes) {
          const wanted = size + bytes;
          if (wanted > smallEnoughBytes) {
            const more = wanted - counted;
            if ((takenBy.get(owner) ?? 0) + more > ofOneBytes) throw tooMany("one account", ofOneBytes);
            if (taken + more > allBytes) throw tooMany("all accounts", allBytes);
            move(owner, more);
            counted = wanted;
          }
          size = wanted;
        },
        leave() {
          if (counted > 0) move(owner, -counted);
          counted = 0;
        },
      };
    },
  };
}
