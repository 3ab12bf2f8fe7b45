import { useRef, useState } from "preact/hooks";
import { ApiError, call } from "../../api/client.ts";
import type { InboxAnswer } from "../../api/types.ts";
import { Button } from "../../parts/button.tsx";
import { DeliveryState } from "../../parts/delivery-state.tsx";
import { Choice, Field } from "../../parts/field.tsx";
import { Panel } from "../../parts/panel.tsx";
import { useReadOnly } from "../../parts/read-only.ts";
import { delaysFor, effectOf, isStandard, standardAnswer, statuses } from "./answers.ts";

const other = "other";

/** How the inbox responds, and what that does to a delivery. A choice applies from the next delivery on. */
export function AnswerPanel({ answer, onSaved }: { answer: InboxAnswer; onSaved(answer: InboxAnswer): void }) {
  const { wanted, wrong, set } = useSaving(answer, onSaved);
  /** The status that is being typed; null: none is. */
  const [typed, setTyped] = useState<string | null>(null);
  const isPreset = statuses.some(({ value }) => value === String(wanted.status));
  const isOther = typed !== null || !isPreset;
  const { state, rule } = effectOf(wanted);
  const readOnly = useReadOnly();

  return (
    <Panel
      title="Respond with"
      actions={
        !isStandard(wanted) && (
          <Button
            changes
            onClick={() => {
              setTyped(null);
              set(standardAnswer);
            }}
          >
            Back to 204
          </Button>
        )
      }
    >
      <fieldset class="stack" disabled={readOnly !== null} title={readOnly ?? undefined}>
        <div class="answer-fields">
          <Choice
            label="Status"
            options={[...statuses, { value: other, text: "Other" }]}
            value={isOther ? other : String(wanted.status)}
            onChoose={(value) => {
              setTyped(value === other ? String(wanted.status) : null);
              if (value !== other) set({ ...wanted, status: Number(value) });
            }}
          />
          <Choice
            label="Delay"
            options={delaysFor(wanted)}
            value={String(wanted.delay_ms)}
            onChoose={(value) => set({ ...wanted, delay_ms: Number(value) })}
          />
          <label class="inbox-check">
            <input
              type="checkbox"
              checked={wanted.silent}
              onChange={({ currentTarget }) => set({ ...wanted, silent: currentTarget.checked })}
            />
            Do not respond
          </label>
        </div>
        {isOther && (
          <form
            class="other-status"
            onSubmit={(event) => {
              event.preventDefault();
              set({ ...wanted, status: Number(typed ?? wanted.status) });
            }}
          >
            <Field
              label="Other status"
              type="number"
              min={200}
              max={599}
              value={typed ?? String(wanted.status)}
              onType={setTyped}
              required
              hint="200 to 599"
              wrong={wrong}
            />
            <Button type="submit">Use it</Button>
          </form>
        )}
        {wrong !== null && !isOther && (
          <p class="notice bad" role="alert">
            {wrong}
          </p>
        )}
        <p class="inbox-effect" role="status">
          <DeliveryState state={state} />
          <span class="soft">{rule}</span>
        </p>
      </fieldset>
    </Panel>
  );
}

function inWords(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  const { broken, message } = error;
  return broken?.field === "status" ? `The status ${broken.rule}.` : message;
}

/** Saves the choices one after another, in the order in which they were made. */
function useSaving(answer: InboxAnswer, onSaved: (answer: InboxAnswer) => void) {
  const [wanted, setWanted] = useState<InboxAnswer | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const before = useRef<Promise<void>>(Promise.resolve());

  async function save(next: InboxAnswer): Promise<void> {
    try {
      onSaved(await call<InboxAnswer>("/v1/inbox/answer", { method: "PUT", body: next }));
    } catch (error) {
      setWrong(inWords(error));
    }
    setWanted((now) => (now === next ? null : now));
  }

  return {
    wanted: wanted ?? answer,
    wrong,
    set(next: InboxAnswer) {
      setWanted(next);
      setWrong(null);
      before.current = before.current.then(() => save(next));
    },
  };
}
