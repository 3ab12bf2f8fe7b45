import { useState } from "preact/hooks";
import { call, callForHeader } from "../../api/client.ts";
import type { Previewed } from "../../api/types.ts";
import { readWebhooks } from "../../api/webhooks.ts";
import { Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Choices } from "../../parts/choices.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { Panel } from "../../parts/panel.tsx";
import { say } from "../../parts/said.tsx";
import { useRefresh } from "../../stream/live.ts";
import { useLoaded } from "../../stream/load.ts";
import {
  type Choice,
  defaultLabel,
  fieldsOf,
  fromLocal,
  type Kind,
  kinds,
  missing,
  nothingSelected,
  startText,
  toLocal,
} from "./choice.ts";

/** How often the number of failed events follows what happens. */
const recountEveryMs = 2_000;
const listEveryMs = 1_000;

/** Beyond it, one press is not enough. */
const mostUnasked = 100;

const targets = {
  failed: "to the webhooks that have not acknowledged them",
  all: "to every registered webhook",
} as const;

/** What to replay, how many events that is, and the button. */
export function NewReplay({
  choice,
  settled,
  onChange,
  onStarted,
}: {
  choice: Choice;
  /** Of which the events are counted. */
  settled: Choice;
  onChange(choice: Choice): void;
  /** @param id of the replay */
  onStarted(id: string): void;
}) {
  /** Null: it follows the choice and the time. */
  const [label, setLabel] = useState<string | null>(null);
  const shownLabel = label ?? defaultLabel(choice.kind, new Date());
  const isIncomplete = missing(settled) !== null;
  const preview = useLoaded(JSON.stringify([settled.kind, fieldsOf(settled)]), async (signal) => {
    if (isIncomplete) return null;
    const body = { kind: settled.kind, ...fieldsOf(settled) };
    return call<Previewed>("/v1/events/replays/preview", { method: "POST", body, signal });
  });
  useRefresh(settled.kind === "failed" ? ["delivery.finished"] : [], recountEveryMs, preview.reload);

  const webhooks = useLoaded("webhooks", readWebhooks);
  useRefresh(["account.changed"], listEveryMs, webhooks.reload);

  const [isAsking, setAsking] = useState(false);
  const start = useAttempt(
    async () => {
      setAsking(false);
      const location = await callForHeader(`/v1/events/replays/${choice.kind}`, "location", {
        method: "POST",
        body: { ...fieldsOf(choice), replayGroupId: shownLabel },
      });
      setLabel(null);
      say(`Replay ${shownLabel} started.`);
      onStarted(location?.split("/").at(-1) ?? "");
      preview.reload();
    },
    { fields: ["eventId", "replayGroupId", "startTime", "endTime"] },
  );

  const lacking = missing(choice);
  const isCounted = choice === settled && preview.error === null && preview.data !== undefined;
  const selected = isCounted ? (preview.data?.selected ?? null) : null;
  const why =
    lacking ?? (preview.error !== null ? preview.error.message : selected === 0 ? nothingSelected[choice.kind] : null);
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
          if (selected > mostUnasked) setAsking(true);
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
          <Refusal of={start} />
          <div class="buttons">
            <Button
              kind="primary"
              type="submit"
              busy={start.isBusy}
              disabled={selected === null || selected === 0 || shownLabel.trim() === "" || start.waitSeconds > 0}
            >
              {startText(choice.kind, selected)}
              {selected !== null && selected > mostUnasked && " …"}
            </Button>
            <p class="soft small" role="status">
              {why ?? (selected === null ? "Counting events…" : "")}
            </p>
          </div>
        </div>
      </form>
      {isAsking && (
        <Dialog title={`${startText(choice.kind, selected)}?`} onClose={() => setAsking(false)}>
          <p>
            They will be delivered again {choice.kind === "failed" ? targets.failed : targets.all}, labelled{" "}
            <strong>{shownLabel}</strong>.
          </p>
          <div class="buttons">
            <Button onClick={() => setAsking(false)}>Not now</Button>
            <Button kind="primary" onClick={start.run}>
              Start the replay
            </Button>
          </div>
        </Dialog>
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

/** A range that was never chosen begins as the last hour. */
function begin(choice: Choice, kind: Kind): Partial<Choice> {
  return kind === "timeline" && choice.from === "" && choice.to === "" ? { kind, ...last(hourMs) } : { kind };
}

function last(ms: number): Pick<Choice, "from" | "to"> {
  const now = Date.now();
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
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <>
      <div class="range">
        <Field
          label="From"
          type="datetime-local"
          step={1}
          value={toLocal(choice.from)}
          onType={(local) => onChange({ from: fromLocal(local) })}
          wrong={wrong}
        />
        <Field
          label="To, inclusive"
          type="datetime-local"
          step={1}
          value={toLocal(choice.to)}
          onType={(local) => onChange({ to: fromLocal(local, true) })}
        />
      </div>
      <div class="buttons">
        {presets.map(({ text, ms }) => (
          <Button key={text} onClick={() => onChange(last(ms))}>
            {text}
          </Button>
        ))}
        <p class="soft small">Times are in your time zone, {zone}.</p>
      </div>
    </>
  );
}
