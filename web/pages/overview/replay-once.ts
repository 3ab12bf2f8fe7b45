import { call } from "../../api/client.ts";
import { shortenId } from "../../format/shorten.ts";
import { say } from "../../parts/said.tsx";

/** Delivers an event again to every registered webhook, and says under which label. */
export async function replayOnce(eventId: string): Promise<void> {
  const replayGroupId = labelFor(new Date());
  await call("/v1/events/replays/single", { method: "POST", body: { eventId, replayGroupId } });
  say(`${shortenId(eventId)} is delivered again as ${replayGroupId}.`);
}

/** `dashboard-20260301-1234`: who looks at a record later sees whence and when it was asked for. */
function labelFor(at: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}${two(at.getMonth() + 1)}${two(at.getDate())}`;
  return `dashboard-${day}-${two(at.getHours())}${two(at.getMinutes())}`;
}
