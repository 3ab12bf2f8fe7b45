import { ageInWords } from "../../format/kept.ts";
import { Panel } from "../../parts/panel.tsx";
import { now } from "../../parts/time.tsx";
import { account } from "../../session/account.ts";

/** The id of the sentence that says why the event cannot be replayed. */
export const erasedId = "erased";

/**
 * Stands in for a payload that was erased before its event. When that happened is not stored, and the age now in force
 * may be a different one.
 */
export function ErasedPayload({ acceptedAt }: { acceptedAt: string }) {
  const seconds = account.value?.retention_payloads_seconds ?? null;
  const isOlder = seconds !== null && now.value - Date.parse(acceptedAt) > seconds * 1000;
  return (
    <Panel title="Payload">
      <p id={erasedId}>
        The payload was erased{isOlder ? `: payloads are kept for ${ageInWords(seconds)}` : " as it had become old"}.
        Without it the event cannot be replayed.
      </p>
    </Panel>
  );
}
