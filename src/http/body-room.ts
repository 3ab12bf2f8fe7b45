import { unavailable } from "../errors.ts";

/**
 * The memory that bodies may take while they are read and handled: whoever sends much at once, or breaks off what it
 * announced before the server has seen the end of it, is asked to come back. Sums of the lengths that are announced.
 */
export const bodyRoomBytes = 64 * 2 ** 20;

/** The share of one account; those who have none share one between them. */
export const bodyRoomOfOneBytes = 24 * 2 ** 20;

/** A body up to here takes no more than its connection does and always has room: so no flood keeps an ordinary event out. */
export const smallEnoughBytes = 16 * 1024;

/** What one request has of the room. */
export interface BodyPlace {
  /**
   * Makes room for so many bytes more.
   * @throws unavailable `too_many_bodies`; what the request has stays
   */
  grow(bytes: number): void;
  /** Gives all of it back; nothing may grow after that. */
  leave(): void;
}

export interface BodyRoom {
  /** @param owner an account's id; undefined for whoever has none */
  enter(owner: string | undefined): BodyPlace;
}

/** Counts what the bodies under way take, together and by account. */
export function createBodyRoom(allBytes = bodyRoomBytes, ofOneBytes = bodyRoomOfOneBytes): BodyRoom {
  let taken = 0;
  const takenBy = new Map<string, number>();

  function move(owner: string, bytes: number): void {
    taken += bytes;
    const rest = (takenBy.get(owner) ?? 0) + bytes;
    if (rest > 0) takenBy.set(owner, rest);
    else takenBy.delete(owner);
  }

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

const tooMany = (whose: string, bytes: number) =>
  unavailable(
    `The bodies of ${whose} that are under way may have ${bytes / 2 ** 20} MiB together; repeat the request.`,
    "too_many_bodies",
  );
