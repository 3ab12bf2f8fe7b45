import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Webhook } from "../../api/types.ts";
import { saveSettings } from "../../api/webhooks.ts";
import { AttemptButton, Refusal, useAttempt } from "../../parts/attempt.tsx";
import { Button } from "../../parts/button.tsx";
import { Area, Field } from "../../parts/field.tsx";
import { Panel } from "../../parts/panel.tsx";
import { say } from "../../parts/said.tsx";
import { noteUnsaved } from "../../session/unsaved.ts";
import { changesOf, type Edits, editsBeyond, toDraft, wrongHeaders, wrongPattern } from "./settings.ts";

/** By webhook. They outlive the view: a user who looks something up elsewhere finds the changes again. */
const kept = signal<Readonly<Record<string, Edits>>>({});

const pathOf = (id: string) => `/webhooks/${id}`;

function keep(id: string, edits: Edits): void {
  kept.value = { ...kept.peek(), [id]: edits };
  if (Object.keys(edits).length === 0) noteUnsaved(pathOf(id), null);
}

/** Patterns are named by their position in the list. */
const fields = ["name", "rate_limit", "max_concurrency", "headers"];

/** A webhook's settings; none of them changes until they are saved. */
export function SettingsForm({ webhook, onSaved }: { webhook: Webhook; onSaved(webhooks: Webhook[]): void }) {
  const { id } = webhook;
  const edits = kept.value[id] ?? {};
  const draft = { ...toDraft(webhook), ...edits };
  const changes = changesOf(webhook, draft);
  const isChanged = Object.keys(changes).length > 0;

  const save = useAttempt(
    async () => {
      onSaved(await saveSettings(id, changes));
      // What was typed in the meantime stays.
      keep(id, editsBeyond(kept.peek()[id] ?? {}, edits));
      say("Settings saved.");
    },
    { fields },
  );

  useEffect(() => {
    noteUnsaved(pathOf(id), isChanged ? "You have unsaved changes to a webhook's settings." : null);
  }, [isChanged, id]);

  const edit = (change: Edits) => {
    save.forget();
    const all = { ...edits, ...change };
    // What is registered is about to change while it is saved.
    keep(id, save.isBusy ? all : editsBeyond(all, toDraft(webhook)));
  };
  const twice = wrongHeaders(draft);
  const types = wrongPattern(save.refusal?.broken ?? null, draft);

  return (
    <Panel title="Settings">
      <form
        class="form webhook-settings"
        onSubmit={(event) => {
          event.preventDefault();
          if (isChanged && twice === null) save.run();
        }}
      >
        <Field
          label="Name"
          value={draft.name}
          onType={(name) => edit({ name })}
          hint="Only for you."
          autocomplete="off"
          wrong={save.wrong("name")}
        />
        <Area
          label="Event types"
          rows={3}
          value={draft.eventTypes}
          onType={(eventTypes) => edit({ eventTypes })}
          placeholder="order.*"
          hint="One per line: order.paid, or order.* for every type that starts with it. Empty: every event."
          wrong={types}
        />
        <div class="two">
          <Field
            label="Rate limit per second"
            type="number"
            min={1}
            value={draft.rateLimit}
            onType={(rateLimit) => edit({ rateLimit })}
            hint="How many attempts may start in a second. Empty: no limit."
            wrong={save.wrong("rate_limit")}
          />
          <Field
            label="Concurrency"
            type="number"
            min={1}
            value={draft.maxConcurrency}
            onType={(maxConcurrency) => edit({ maxConcurrency })}
            hint="How many attempts may run at the same time. Empty: the server's own limit."
            wrong={save.wrong("max_concurrency")}
          />
        </div>
        <Area
          label="Headers"
          rows={3}
          value={draft.headers}
          onType={(headers) => edit({ headers })}
          placeholder="Authorization: Bearer …"
          hint="One per line, sent with ours on each delivery. Saved values are hidden; a line you leave keeps its value."
          wrong={twice ?? save.wrong("headers")}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={draft.ordered}
            onChange={({ currentTarget }) => edit({ ordered: currentTarget.checked })}
          />
          <span>
            Keep the order of events with the same key
            <small class="soft">
              Each waits until the one before it has ended. The key is <code>ordering_key</code>, next to the payload.
            </small>
          </span>
        </label>
        {types === null && <Refusal of={save} />}
        <div class="buttons">
          <AttemptButton of={save} type="submit" disabled={!isChanged}>
            Save settings
          </AttemptButton>
          {isChanged && (
            <Button
              onClick={() => {
                save.forget();
                keep(id, {});
              }}
            >
              Discard
            </Button>
          )}
        </div>
      </form>
    </Panel>
  );
}
