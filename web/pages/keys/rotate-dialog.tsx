import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { ApiKey } from "../../api/types.ts";
import { exactTime } from "../../format/time.ts";
import { zoneName } from "../../format/zone.ts";
import { Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Choices } from "../../parts/choices.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { say } from "../../parts/said.tsx";
import { maskKey } from "../../parts/secret.tsx";

const graces = [
  { value: "0", text: "At once", hint: "For a key that may have leaked." },
  { value: "3600", text: "After 1 hour" },
  { value: "86400", text: "After 1 day" },
  { value: "604800", text: "After 7 days" },
] as const;

/** Replaces the key, and says beforehand what will become of those in use. */
export function RotateDialog({
  current,
  onClose,
  onRotated,
}: {
  /** The keys that still work. */
  current: readonly ApiKey[];
  onClose(): void;
  onRotated(): void;
}) {
  const [grace, setGrace] = useState("86400");
  const attempt = useAttempt(async () => {
    const body = { grace_period_seconds: Number(grace) };
    await call<ApiKey>("/v1/tenants/api-keys/rotate", { method: "POST", body });
    say("The key is rotated. Copy the new one from the top of the list.");
    onRotated();
  });
  const names = current.map(({ key }) => maskKey(key)).join(" and ");

  return (
    <Dialog title="Rotate the key" onClose={onClose}>
      <p>A new key is created and works at once.</p>
      {current.length > 0 && (
        <>
          <Choices
            legend={current.length === 1 ? "The current key stops working" : "The current keys stop working"}
            name="grace"
            options={graces}
            value={grace}
            onChoose={setGrace}
            isFocused
          />
          <p class={grace === "0" ? "notice warn" : "notice"}>
            {grace === "0"
              ? `Requests that use ${names} are refused (401) at once.`
              : `Until ${endOf(Number(grace))}, ${names} and the new key both work, so that you can switch without losing an event. A key that expires sooner still does.`}
          </p>
        </>
      )}
      <Refusal of={attempt} />
      <div class="buttons">
        <Button onClick={onClose}>Keep the key</Button>
        <Button kind={grace === "0" ? "danger" : "primary"} onClick={attempt.run} busy={attempt.isBusy}>
          Rotate the key
        </Button>
      </div>
    </Dialog>
  );
}

/** By the reader's clock and calendar. */
function endOf(seconds: number): string {
  const ms = Date.now() + seconds * 1000;
  return `${exactTime(ms).slice(0, 16)} ${zoneName(ms)}`;
}
