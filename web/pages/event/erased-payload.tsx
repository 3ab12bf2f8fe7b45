import { ageInWords } from "../../format/kept.ts";
import { Panel } from "../../parts/panel.tsx";
import { now } from "../../parts/time.tsx";
import { account } from "../../session/account.ts";

/** Of the sentence that says why the event cannot be replayed. */
export const erasedId = "erased";

/** In the place of a payload that went before its event. When it went is not kept, and the age in force may be another one. */
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
