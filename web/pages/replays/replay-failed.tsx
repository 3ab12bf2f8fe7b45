import { useState } from "preact/hooks";
import { call, callForReplay } from "../../api/client.ts";
import type { Previewed } from "../../api/types.ts";
import { erasedInWords, mostUnasked, sendableOf } from "../../format/kept.ts";
import { labelOf } from "../../format/label.ts";
import { count } from "../../format/number.ts";
import { Button } from "../../parts/button.tsx";
import { readAhead } from "../../parts/read-ahead.ts";
import { type Facts, ReplayQuestion } from "../../parts/replay-question.tsx";
import { say } from "../../parts/said.tsx";

/** In the API's terms. */
export interface FailedFilter {
  readonly webhook?: string | undefined;
  readonly type?: string | undefined;
  readonly code?: string | undefined;
  readonly status?: number | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Delivers exactly what failed again; for very many it asks first. */
export function ReplayFailed({
  filter,
  n,
  to,
  facts,
  text = "Replay",
  label,
  onStarted,
}: {
  filter: FailedFilter;
  /** As known here; what is replayed is counted when the button is pressed. */
  n: number;
  /** The name of the webhook that gets it. */
  to: string;
  /** Describes what failed. */
  facts: Facts;
  text?: string;
  /** The button's label, for those who cannot see what is next to it. */
  label: string;
  /** @param id of the replay */
  onStarted(id: string): void;
}) {
  const [asked, setAsked] = useState<Previewed | null>(null);

  async function begin(): Promise<void> {
    const preview = await call<Previewed>("/v1/events/replays/preview", {
      method: "POST",
      body: { kind: "failed", ...filter },
    });
    const n = sendableOf(preview);
    const erased = erasedInWords(preview);
    if (n === 0) say(erased || "These are no longer failed, so there is nothing to replay.");
    else if (n > mostUnasked || erased !== "") setAsked(preview);
    else await start(n);
  }

  async function start(selected: number): Promise<void> {
    const id = await callForReplay("failed", { ...filter, replayGroupId: labelOf("failed", Date.now()) });
    setAsked(null);
    onStarted(id);
    say(
      (await readAhead(id))
        ? `Queued ${events(selected)} to ${to}: another replay is running.`
        : `Replaying ${events(selected)} to ${to}.`,
    );
  }

  return (
    <>
      <Button changes onClick={begin} aria-label={label}>
        {text} {count(n)}
      </Button>
      {asked !== null && (
        <ReplayQuestion
          title={`Replay ${events(sendableOf(asked))}?`}
          facts={[["Webhook", to], ...facts]}
          press={`Replay ${events(sendableOf(asked))}`}
          onStart={() => start(sendableOf(asked))}
          onClose={() => setAsked(null)}
        >
          {erasedInWords(asked)}They are sent again to <bdi>{to}</bdi> and nowhere else. The replay can be cancelled
          while it runs.
        </ReplayQuestion>
      )}
    </>
  );
}

const events = (n: number): string => (n === 1 ? "1 failed event" : `${count(n)} failed events`);
