import { createRoom, type Room } from "./room.ts";

/**
 * The memory that bodies may take while they are read and handled: whoever sends much at once, or breaks off what it
 * announced before the server has seen the end of it, is asked to come back. Sums of the lengths that are announced.
 */
export const bodyRoomBytes = 64 * 2 ** 20;

/** The share of one account; those who have none share one between them. */
export const bodyRoomOfOneBytes = 24 * 2 ** 20;

/** A body up to here takes no more than its connection does and always has room: so no flood keeps an ordinary event out. */
export const smallEnoughBytes = 16 * 1024;

/** Counts what the bodies under way take; beyond it is 503 `too_many_bodies`. */
export const createBodyRoom = (allBytes = bodyRoomBytes, ofOneBytes = bodyRoomOfOneBytes): Room =>
  createRoom({ what: "request bodies", code: "too_many_bodies", allBytes, ofOneBytes, smallEnoughBytes });
