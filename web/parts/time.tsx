import { signal } from "@preact/signals";
import { corrections, serverNow } from "../api/server-time.ts";
import { exactTimeWithZone, relativeTime } from "../format/time.ts";

/** One clock for all times on the page, so that they change together instead of each by its own timer. */
export const now = signal(serverNow());
const tick = () => {
  if (document.visibilityState === "visible") now.value = serverNow();
};
setInterval(tick, 1000);
corrections.subscribe(tick);

/** A time as people say it, exact on hover. */
export function Time({ at }: { at: string }) {
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={exactTimeWithZone(ms)} class="nowrap">
      {relativeTime(ms, now.value)}
    </time>
  );
}
