import { parseDuration } from "../../lib/duration.ts";
import { parseIso } from "../../lib/iso-time.ts";

/** A time as typed: `10m` (ago) or ISO 8601. In ms since the Unix epoch; null for anything else. */
export function parseMoment(text: string, role: "start" | "end", now: number): number | null {
  const ago = parseDuration(text);
  const ms = ago === null ? parseIso(text, role) : now - ago;
  return ms === null || ms < 0 ? null : ms;
}
