import { useState } from "preact/hooks";
import { call, callForReplay } from "../../api/client.ts";
import { serverNow } from "../../api/server-time.ts";
import type { Previewed } from "../../api/types.ts";
import { readWebhooks } from "../../api/webhooks.ts";
import { erasedInWords, mostUnasked, sendableOf } from "../../format/kept.ts";
import { toTyped } from "../../format/typed-time.ts";
import { AttemptButton, Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Choices } from "../../parts/choices.tsx";
import { DisabledWebhook } from "../../parts/disabled-webhook.tsx";
import { Field } from "../../parts/field.tsx";
import { Panel } from "../../parts/panel.tsx";
import { readAhead } from "../../parts/read-ahead.ts";
import { ReplayQuestion } from "../../parts/replay-question.tsx";
import { say } from "../../parts/said.tsx";
import { TimeField } from "../../parts/time-field.tsx";
import { useRefresh } from "../../stream/live.ts";
import { useLoaded } from "../../stream/load.ts";
import { isEnabled } from "../events/receivers.ts";
import { toUnacknowledged } from "../events/replay-these.ts";
import {
  type Choice,
  defaultLabel,
  fieldsOf,
  type Kind,
  kinds,
  missing,
  nothingSelected,
  startText,
} from "./choice.ts";

/** How often the count of failed events is refreshed. */
const recountEveryMs = 2_000;
const listEveryMs = 1_000;

/** What to replay, how many events that is, and the button. */
export function NewReplay({
  choice,
  settled,
  onChange,
  onStarted,
}: {
  choice: Choice;
  /** The choice for which events are counted. */
  settled: Choice;
  onChange(choice: Choice): void;
  /** @param id of the replay */
  onStarted(id: string): void;
}) {
  /** Null: the label follows the choice and the time. */
  const [label, setLabel] = useState<string | null>(null);
  const [labelAt, setLabelAt] = useState(Date.now);
  const shownLabel = label ?? defaultLabel(choice.kind, labelAt);
  const isIncomplete = missing(settled) !== null;
  const preview = useLoaded(JSON.stringify([settled.kind, fieldsOf(settled)]), async (signal) => {
    if (isIncomplete) return null;
    const body = { kind: settled.kind, ...fieldsOf(settled) };
    return call<Previewed>("/v1/events/replays/preview", { method: "POST", body, signal });
  });
  useRefresh(
    settled.kind === "failed" ? ["delivery.finished", "deliveries.ended"] : [],
    recountEveryMs,
    preview.reload,
  );

  const webhooks = useLoaded("webhooks", readWebhooks);
  useRefresh(["account.changed"], listEveryMs, webhooks.reload);

  const disabled = webhooks.data?.some(isEnabled) ? undefined : webhooks.data?.[0];

  const [isAsking, setAsking] = useState(false);
  const start = useAttempt(
    async () => {
      setAsking(false);
      const id = await callForReplay(choice.kind, { ...fieldsOf(choice), replayGroupId: shownLabel });
      setLabel(null);
      // That label is used up.
      setLabelAt(Math.max(Date.now(), labelAt + 1000));
      say(
        (await readAhead(id))
          ? `Replay ${shownLabel} is queued: another replay is running.`
          : `Replay ${shownLabel} started.`,
      );
      onStarted(id);
      preview.reload();
    },
    { fields: ["eventId", "replayGroupId", "startTime", "endTime"] },
  );

  const lacking = missing(choice);
  const isCounted = choice === settled && preview.error === null && preview.data !== undefined;
  const counted = isCounted ? preview.data : null;
  const selected = counted ? sendableOf(counted) : null;
  // What failed for one webhook may wait for a retry at another.
  const mayGoWider = choice.kind === "failed" && (webhooks.data?.length ?? 0) > 1;
  const mustAsk = selected !== null && selected > (mayGoWider ? 0 : mostUnasked);
  const erased = counted ? erasedInWords(counted) : "";
  const nothing = selected === 0 ? nothingSelected[choice.kind] : "";
  const why = lacking ?? preview.error?.message ?? (erased || nothing);
  const edit = (change: Partial<Choice>) => {
    start.forget();
    onChange({ ...choice, ...change });
  };

  return (
    <Panel title="Start a replay">
      <form
        class="new-replay"
        onSubmit={(event) => {
          event.preventDefault();
          if (selected === null || selected === 0) return;
          if (mustAsk) setAsking(true);
          else start.run();
        }}
      >
        <Choices
          legend="What to replay"
          name="kind"
          options={Object.entries(kinds).map(([value, { text, hint }]) => ({ value, text, hint }))}
          value={choice.kind}
          onChoose={(kind) => edit(begin(choice, kind as Kind))}
        />
        <div class="form">
          {choice.kind === "single" && (
            <Field
              label="Event id"
              value={choice.eventId}
              onType={(eventId) => edit({ eventId })}
              placeholder="evt_…"
              autocomplete="off"
              wrong={start.wrong("eventId")}
            />
          )}
          {choice.kind === "timeline" && (
            <Range choice={choice} onChange={edit} wrong={start.wrong("startTime") ?? start.wrong("endTime")} />
          )}
          <Field
            label="Label"
            value={shownLabel}
            onType={setLabel}
            hint="Each replayed delivery carries it."
            autocomplete="off"
            wrong={shownLabel.trim() === "" ? "Enter a label." : start.wrong("replayGroupId")}
          />
          {webhooks.data?.length === 0 && (
            <p class="notice warn">
              No webhook is registered, so a replay has nowhere to go. <a href="/webhooks">Register a webhook first</a>.
            </p>
          )}
          {disabled && <DisabledWebhook webhook={disabled} onEnabled={webhooks.reload} />}
          <Refusal of={start} />
          <div class="buttons">
            <AttemptButton
              of={start}
              type="submit"
              disabled={selected === null || selected === 0 || shownLabel.trim() === "" || disabled !== undefined}
            >
              {startText(choice.kind, selected)}
              {mustAsk && " …"}
            </AttemptButton>
            <p class="soft small" role="status">
              {why || (selected === null && "Counting events…")}
            </p>
          </div>
        </div>
      </form>
      {isAsking && (
        <ReplayQuestion
          title={`${startText(choice.kind, selected)}?`}
          facts={[
            ["Selection", kinds[choice.kind].text],
            [
              "Accepted",
              choice.kind === "timeline"
                ? `${toTyped(choice.from, "from")} to ${toTyped(choice.to, "to")}`
                : "At any time",
            ],
            ["Label", shownLabel],
          ]}
          press="Start the replay"
          onStart={async () => start.run()}
          onClose={() => setAsking(false)}
        >
          {erased}They will be delivered again{" "}
          {choice.kind === "failed" ? toUnacknowledged : "to every registered webhook"}.
        </ReplayQuestion>
      )}
    </Panel>
  );
}

const hourMs = 3_600_000;
const presets = [
  { text: "Last hour", ms: hourMs },
  { text: "6 h", ms: 6 * hourMs },
  { text: "24 h", ms: 24 * hourMs },
  { text: "7 d", ms: 7 * 24 * hourMs },
];

/** A range that was never chosen starts as the last hour. */
function begin(choice: Choice, kind: Kind): Partial<Choice> {
  return kind === "timeline" && choice.from === "" && choice.to === "" ? { kind, ...last(hourMs) } : { kind };
}

function last(ms: number): Pick<Choice, "from" | "to"> {
  const now = serverNow();
  return { from: new Date(now - ms).toISOString(), to: new Date(now).toISOString() };
}

function Range({
  choice,
  onChange,
  wrong,
}: {
  choice: Choice;
  onChange(change: Partial<Choice>): void;
  wrong: string | null;
}) {
  return (
    <>
      <div class="range">
        <TimeField
          label="From"
          side="from"
          value={choice.from}
          onChange={(from) => onChange({ from: from ?? "" })}
          wrong={wrong}
        />
        <TimeField label="To, inclusive" side="to" value={choice.to} onChange={(to) => onChange({ to: to ?? "" })} />
      </div>
      <div class="buttons">
        {presets.map(({ text, ms }) => (
          <Button key={text} onClick={() => onChange(last(ms))}>
            {text}
          </Button>
        ))}
      </div>
    </>
  );
}
