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
  /** @param urls the webhooks that get it; undefined: all of them */
  onReplay(urls?: readonly string[]): Promise<void>;
  onClose(): void;
}) {
  const inWords = (urls: readonly string[]) => namesInWords(urls.map((url) => webhookInWords(url, receivers)));
  const delivered = receiversIn("DELIVERED", records, receivers);
  const missed = receiversIn("FAILED", records, receivers);
  const all = receivers.length < 3 ? inWords(receivers.map(({ url }) => url)) : `all ${receivers.length} webhooks`;
  const toMissed = useAttempt(async () => {
    await onReplay(missed);
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
