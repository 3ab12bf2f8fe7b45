import { unavailable } from "../domain/errors.ts";

/** The memory that requests in progress may take, together and per account. */
export interface Room {
  /** @param owner an account's id; undefined for a client without one: all such clients split a single share */
  enter(owner: string | undefined): Place;
}

/** One request's part of a room. */
export interface Place {
  /**
   * Reserves this many more bytes.
   * @throws unavailable with the room's code; the request keeps what it has
   */
  grow(bytes: number): void;
  /** Gives everything back; nothing may grow after that. */
  leave(): void;
}

export interface RoomOptions {
  /** What is counted, for the message of a refusal: "bodies". */
  what: string;
  code: string;
  allBytes: number;
  /** The share of one account. */
  ofOneBytes: number;
  /** A request up to this size is not counted and always has room. */
  smallEnoughBytes: number;
}

/** Counts what is taken, in total and per account, and asks clients that want more to come back. */
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
