import { createRoom, type Room } from "./room.ts";

/**
 * The memory that bodies may take while they are read and handled. A client that sends a lot at a time, or breaks off an
 * announced body before the server has seen the end of it, is asked to come back. Counts announced lengths.
 */
export const bodyRoomBytes = 64 * 2 ** 20;

/** The share of one account; all clients without an account split a single share. */
export const bodyRoomOfOneBytes = 24 * 2 ** 20;

/**
 * A body up to this size takes no more than its connection does and always has room, so no flood can keep an ordinary event
 * out.
 */
export const smallEnoughBytes = 16 * 1024;

/** Counts the memory of bodies in progress; beyond the limit requests get 503 `too_many_bodies`. */
export const createBodyRoom = (allBytes = bodyRoomBytes, ofOneBytes = bodyRoomOfOneBytes): Room =>
  createRoom({ what: "request bodies", code: "too_many_bodies", allBytes, ofOneBytes, smallEnoughBytes });
