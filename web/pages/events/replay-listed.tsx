import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Previewed, Webhook } from "../../api/types.ts";
import { erasedInWords, sendableOf } from "../../format/kept.ts";
import { count } from "../../format/number.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ReplayQuestion } from "../../parts/replay-question.tsx";
import { useLoaded } from "../../stream/load.ts";
import { chipsOf } from "./chips.ts";
import { type Filter, urlOf } from "./filter.ts";
import type { Listed } from "./record.ts";
import {
  eventsIn,
  includesDelivered,
  type ReplayThese,
  replayTheseOf,
  restOf,
  takenBy,
  targetInWords,
  urlOfReplayed,
} from "./replay-these.ts";
import { isReplaying, startReplay } from "./replaying.tsx";

interface ReplayListedProps {
  filter: Filter;
  listed: Listed;
  webhooks: readonly Webhook[] | undefined;
  /** A search is being typed: what is listed is not what is meant. */
  isTyping: boolean;
}

/** Replays what is listed, all of it and nothing else. It asks first for many, and for what was acknowledged already. */
export function ReplayListed({ filter, listed, webhooks, isTyping }: ReplayListedProps) {
  const [asked, setAsked] = useState<ReplayThese | null>(null);
  const these = replayTheseOf(filter, listed, webhooks);

  async function start(chosen: ReplayThese): Promise<void> {
    const taken = takenBy(chosen, filter);
    const about = {
      // The kind of the replay already says the state.
      narrowedTo: chipsOf(chosen.by === "selection" ? { ...taken, state: "" } : taken, webhooks)
        .map(({ text }) => text)
        .join(" · "),
      eventsUrl: urlOfReplayed(filter, listed),
      listUrl: urlOf(filter),
    };
    await startReplay(chosen, about, (left) => chosen.by === "page" && setAsked(restOf(chosen, left, webhooks ?? [])));
    setAsked(null);
  }

  /** Asks, too, where more is meant by now than is listed: retries may have failed since. */
  async function askOrStart(chosen: ReplayThese): Promise<void> {
    const isMore =
      chosen.by === "selection" && (await preview(chosen)).selected > (eventsIn(listed, chosen.fields) ?? 0);
    if (isMore) setAsked(chosen);
    else await start(chosen);
  }

  if (these === null) return null;
  const taken = takenBy(asked ?? these, filter);
  const selection = chipsOf(taken, webhooks)
    .map(({ text }) => text)
    .concat(filter.span === "" ? "Any time" : [])
    .join(" · ");
  const mustAsk = these.mustAsk || webhooks?.length === 0;
  return (
    <>
      {/* Busy while its replay runs, which has its own part of the page; then the list is read again. */}
      <Button
        changes
        disabled={isTyping}
        busy={isReplaying(urlOf(filter))}
        onClick={() => (mustAsk ? setAsked(these) : askOrStart(these))}
      >
        {these.text}
      </Button>
      {asked !== null && webhooks?.length === 0 && (
        <Dialog title={`Replay ${asked.words}?`} onClose={() => setAsked(null)} asksNothing>
          <p>
            No webhook is registered, so a replay has nowhere to go. <a href="/webhooks">Register a webhook first</a>.
          </p>
        </Dialog>
      )}
      {asked?.by === "page" && (
        <ReplayQuestion
          title={`Replay ${asked.words}?`}
          facts={[["Selection", selection]]}
          press={`Replay ${asked.words}`}
          onStart={() => start(asked)}
          onClose={() => setAsked(null)}
        >
          {asked.again}
        </ReplayQuestion>
      )}
      {asked?.by === "selection" && webhooks?.length !== 0 && (
        <Asking
          these={asked}
          selection={selection}
          target={targetInWords(asked.kind, taken, webhooks ?? [])}
          onStart={() => start(asked)}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  );
}

type Selection = Extract<ReplayThese, { by: "selection" }>;

const preview = ({ kind, fields }: Selection, signal?: AbortSignal) =>
  call<Previewed>("/v1/events/replays/preview", { method: "POST", body: { kind, ...fields }, signal });

function Asking({
  these,
  selection,
  target,
  onStart,
  onClose,
}: {
  these: Selection;
  /** What the list is narrowed to. */
  selection: string;
  target: string;
  onStart(): Promise<void>;
  onClose(): void;
}) {
  const { kind, fields, words } = these;
  const { data, error } = useLoaded(JSON.stringify([kind, fields]), (signal) => preview(these, signal));
  const selected = data ? sendableOf(data) : null;
  const erased = data ? erasedInWords(data) : "";
  // The list counts deliveries, and a replay takes events: an event may be listed once for each webhook.
  const events = selected === null ? "" : `${count(selected)} ${selected === 1 ? "event" : "events"}`;
  const only = fields.webhook === undefined ? "" : " and nowhere else";
  const again = includesDelivered(kind, fields) ? " That includes what was delivered already." : "";
  const whatHappens = `${erased}${events} will be delivered again ${target}${only}.${again}`;
  return (
    <ReplayQuestion
      title={`Replay ${selected ? events : "these"}?`}
      facts={[
        ["Selection", selection],
        ["Listed", words],
      ]}
      press={selected ? `Replay ${events}` : null}
      onStart={onStart}
      onClose={onClose}
    >
      {error?.message ?? (selected === null ? "Counting events…" : whatHappens)}
    </ReplayQuestion>
  );
}
