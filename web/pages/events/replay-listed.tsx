import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Previewed, Webhook } from "../../api/types.ts";
import { count } from "../../format/number.ts";
import { Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { useLoaded } from "../../stream/load.ts";
import { chipsOf, webhookInWords } from "./chips.ts";
import { type Filter, urlOf } from "./filter.ts";
import type { Listed } from "./record.ts";
import { type ReplayThese, replayTheseOf, targetInWords, urlOfReplayed } from "./replay-these.ts";
import { isReplaying, startReplay } from "./replaying.tsx";

interface ReplayListedProps {
  filter: Filter;
  listed: Listed;
  webhooks: readonly Webhook[] | undefined;
}

/** Replays what is listed, all of it and nothing else. Many ask first. */
export function ReplayListed({ filter, listed, webhooks }: ReplayListedProps) {
  const [asked, setAsked] = useState<ReplayThese | null>(null);
  const these = replayTheseOf(filter, listed, webhooks);

  async function start(chosen: ReplayThese): Promise<void> {
    await startReplay(chosen, {
      // The kind of the replay says the state.
      narrowedTo: chipsOf(chosen.by === "selection" ? { ...filter, state: "" } : filter, webhooks)
        .map(({ text }) => text)
        .join(" · "),
      eventsUrl: urlOfReplayed(filter, listed),
      listUrl: urlOf(filter),
    });
    setAsked(null);
  }

  // What runs has its own part of the page; once it is over the list is read again.
  if (these === null || isReplaying(urlOf(filter))) return null;
  const mustAsk = these.mustAsk || webhooks?.length === 0;
  return (
    <>
      <Button onClick={() => (mustAsk ? setAsked(these) : start(these))}>{these.text}</Button>
      {asked?.by === "selection" && (
        <Asking
          these={asked}
          target={targetInWords(
            asked.kind,
            filter,
            (webhooks ?? []).map(({ id }) => webhookInWords(id, webhooks)),
            webhookInWords(filter.webhook, webhooks),
          )}
          isNowhere={webhooks?.length === 0}
          onStart={() => start(asked)}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  );
}

function Asking({
  these: { kind, fields, words },
  target,
  isNowhere,
  onStart,
  onClose,
}: {
  these: Extract<ReplayThese, { by: "selection" }>;
  target: string;
  /** No webhook is registered. */
  isNowhere: boolean;
  onStart(): Promise<void>;
  onClose(): void;
}) {
  const preview = useLoaded(JSON.stringify([kind, fields]), (signal) =>
    call<Previewed>("/v1/events/replays/preview", { method: "POST", body: { kind, ...fields }, signal }),
  );
  const attempt = useAttempt(onStart);
  const selected = preview.data?.selected ?? null;
  const events = selected === null ? "" : `${count(selected)} ${selected === 1 ? "event" : "events"}`;
  const only = fields.webhook === undefined ? "" : " and nowhere else";
  const isWhatever = kind === "all" && fields.code === undefined && fields.status === undefined;
  const again = isWhatever ? " That includes what was delivered already." : "";
  const whatHappens = `${events} will be delivered again ${target}${only}.${again}`;
  return (
    <Dialog title={`Replay ${words}?`} onClose={onClose}>
      {isNowhere ? (
        <p>
          No webhook is registered, so a replay has nowhere to go. <a href="/webhooks">Register a webhook first</a>.
        </p>
      ) : (
        <p role="status">{preview.error?.message ?? (selected === null ? "Counting events…" : whatHappens)}</p>
      )}
      <Refusal of={attempt} />
      <div class="buttons">
        <Button onClick={onClose}>Not now</Button>
        {!isNowhere && (
          <Button
            kind="primary"
            onClick={attempt.run}
            busy={attempt.isBusy}
            disabled={!selected || attempt.waitSeconds > 0}
          >
            {selected ? `Replay ${events}` : "Replay"}
          </Button>
        )}
      </div>
    </Dialog>
  );
}
