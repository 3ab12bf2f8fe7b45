import type { Webhook } from "../../api/types.ts";

/** A webhook to which deliveries do not go as usual. */
export function StateBadge({ webhook: { state } }: { webhook: Webhook }) {
  if (state === "paused") return <span class="badge warn">Paused</span>;
  return state === "disabled" ? <span class="badge bad">Disabled</span> : null;
}
