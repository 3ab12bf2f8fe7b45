import type { Webhook } from "../api/types.ts";
import { enableWebhook } from "../api/webhooks.ts";
import { isolated, showControls } from "../format/controls.ts";
import { hostOf } from "../format/shorten.ts";
import { Button } from "./button.tsx";
import { say } from "./said.tsx";
import { Time } from "./time.tsx";

/** Why a webhook was disabled; a reason that this page does not know is not shown. */
const reasons: Readonly<Record<string, string>> = {
  failing: "every attempt had failed for too long",
  gone: "it answered several deliveries with 410",
};

/** Says that nothing is sent to a webhook any more, why, and the one thing to press. */
export function DisabledWebhook({
  webhook: { id, url, name: given, disabled_at: at, disabled_reason: reason },
  onEnabled,
}: {
  webhook: Webhook;
  onEnabled(): void;
}) {
  const name = given || hostOf(url);
  const why = reasons[reason ?? ""];

  async function enable(): Promise<void> {
    await enableWebhook(id);
    say(`${isolated(name)} is enabled. You can replay what failed while it was disabled.`);
    onEnabled();
  }

  return (
    <p class="bar bad" role="status">
      <span>
        <bdi>{showControls(name)}</bdi> was disabled {at && <Time at={at} />}
        {why !== undefined && `, because ${why}`}. Nothing is sent to it, and what comes for it fails.
      </span>
      <Button changes onClick={enable} aria-label={`Enable ${isolated(name)}`}>
        Enable
      </Button>
    </p>
  );
}
