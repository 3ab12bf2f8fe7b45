import type { Webhook } from "../../api/types.ts";
import { exactTimeWithZone } from "../../format/time.ts";
import { now } from "../../parts/time.tsx";
import type { Failing } from "../overview/failing.ts";
import { since } from "../overview/verdict.ts";

/** Marks a webhook that does not get deliveries as usual. */
export function StateBadge({ webhook: { state } }: { webhook: Webhook }) {
  if (state === "paused") return <span class="badge warn">Paused</span>;
  return state === "disabled" ? <span class="badge bad">Disabled</span> : null;
}

/** Marks a webhook that fails, in the overview's terms; of one that is paused or disabled the other badge tells. */
export function FailingBadge({ failing }: { failing: Failing | undefined }) {
  if (!failing) return null;
  const { downSince, isOngoing } = failing;
  if (downSince === null) return isOngoing ? <span class="badge warn">Fails for some events</span> : null;
  return (
    <span class="badge bad" title={exactTimeWithZone(downSince)}>
      Failing since {since(downSince, now.value)}
    </span>
  );
}
