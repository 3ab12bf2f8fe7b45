import { call, callForReplay } from "../../api/client.ts";
import type { EventRecord } from "../../api/types.ts";
import { labelOf } from "../../format/label.ts";
import { shortenId } from "../../format/shorten.ts";
import { say } from "../../parts/said.tsx";
import { type ListedRecord, withoutPayload } from "./record.ts";

/**
 * Delivers an event again, and shows the label that it used.
 * @param webhook URL or id of the one that gets it; undefined: every registered one
 * @returns its records afterwards, if they can be read
 */
export async function replayEvent(eventId: string, webhook?: string): Promise<ListedRecord[]> {
  const replayGroupId = labelOf("dashboard", Date.now());
  const id = await callForReplay("single", { eventId, replayGroupId, ...(webhook !== undefined && { webhook }) });
  say(`Replaying ${shortenId(eventId)} as ${replayGroupId}.`, "good", {
    href: `/replays?id=${id}`,
    text: "See the replay",
  });
  // The replay was accepted, whatever becomes of this: to report a failure would have it tried again.
  const records = await call<EventRecord[]>(`/v1/events/${eventId}`).catch(() => []);
  return records.map(withoutPayload);
}
