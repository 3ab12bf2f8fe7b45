import { bytes } from "../../format/number.ts";
import type { Status } from "../api/types.ts";

/** The disk in words. Without a floor, such as where the database is elsewhere, no event is refused for want of room here. */
export function diskFactOf({
  disk_free_bytes: free,
  disk_floor_bytes: floor,
}: Pick<Status["storage"], "disk_free_bytes" | "disk_floor_bytes">): { text: string; isBad: boolean } {
  const isBad = free <= floor;
  if (floor === 0) return { text: `${bytes(free)} free`, isBad };
  const text = isBad
    ? `${bytes(free)} free, below the floor of ${bytes(floor)}: new events are refused`
    : `${bytes(free - floor)} until new events are refused`;
  return { text, isBad };
}
