import type { Webhook } from "../../api/types.ts";

/** Marks a webhook that does not get deliveries as usual. */
export function StateBadge({ webhook: { state } }: { webhook: Webhook }) {
  if (state === "paused") return <span class="badge warn">Paused</span>;
  return state === "disabled" ? <span class="badge bad">Disabled</span> : null;
}
