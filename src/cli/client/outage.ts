import { formatDuration } from "../../lib/duration.ts";
import type { Io } from "../io.ts";
import type { Outage } from "./patience.ts";

/**
 * Reports once that the server is unavailable and once that it is back, however many retries lie in between.
 * @param forMs how long requests are retried; without it, for ever
 */
export function createOutage(url: string, io: Pick<Io, "err">, forMs?: number): Outage {
  const howLong = forMs === undefined ? "until it works" : `for ${formatDuration(forMs)}`;
  let isAway = false;
  return {
    began({ reason }) {
      if (!isAway) io.err(`${url} ${reason}. Retrying ${howLong}.`);
      isAway = true;
    },
    ended() {
      if (isAway) io.err(`${url} is available again.`);
      isAway = false;
    },
  };
}
