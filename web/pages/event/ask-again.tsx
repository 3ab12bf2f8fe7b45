import { useRef } from "preact/hooks";
import type { EventRecord, Webhook } from "../../api/types.ts";
import { Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { webhookInWords } from "../events/chips.ts";
import { receiversIn } from "../events/receivers.ts";
import { namesInWords } from "../events/replay-these.ts";

/** Some webhooks have acknowledged the event: they would get it twice. */
export function AskAgain({
  records,
  receivers,
  onReplay,
  onClose,
}: {
  records: readonly EventRecord[];
  /** The webhooks that a replay delivers to. */
  receivers: readonly Webhook[];
  /** @param url the webhook that gets it; undefined: all of them */
  onReplay(url?: string): Promise<void>;
  onClose(): void;
}) {
  const inWords = (urls: readonly string[]) => namesInWords(urls.map((url) => webhookInWords(url, receivers)));
  const delivered = receiversIn("DELIVERED", records, receivers);
  /** If one fails on the way, trying again goes on with the others. */
  const accepted = useRef(new Set<string>()).current;
  const missed = receiversIn("FAILED", records, receivers).filter((url) => !accepted.has(url));
  const all = receivers.length < 3 ? inWords(receivers.map(({ url }) => url)) : `all ${receivers.length} webhooks`;
  const toMissed = useAttempt(async () => {
    for (const url of missed) {
      await onReplay(url);
      accepted.add(url);
    }
    onClose();
  });
  const toAll = useAttempt(async () => {
    await onReplay();
    onClose();
  });
  return (
    <Dialog title="Replay this event?" onClose={onClose}>
      <p>{inWords(delivered)} acknowledged it already, and would get it again.</p>
      <Refusal of={toMissed} />
      <Refusal of={toAll} />
      <div class="buttons">
        <Button onClick={onClose}>Not now</Button>
        <Button kind={missed.length > 0 ? "plain" : "primary"} onClick={toAll.run} busy={toAll.isBusy}>
          Replay to {all}
        </Button>
        {missed.length > 0 && (
          <Button kind="primary" onClick={toMissed.run} busy={toMissed.isBusy}>
            Replay to {inWords(missed)} only
          </Button>
        )}
      </div>
    </Dialog>
  );
}
