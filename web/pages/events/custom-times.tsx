import { useState } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import type { Filter } from "./filter.ts";

const toIso = (local: string, addedMs = 0): string =>
  local === "" ? "" : new Date(new Date(local).getTime() + addedMs).toISOString();

/** The chosen minute is included. */
const restOfMinuteMs = 59_999;

/** The form of `datetime-local`, in the time of this machine. */
function toLocal(iso: string): string {
  if (iso === "") return "";
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Takes effect once complete: half a date would be a different one. */
export function CustomTimes({ filter, onChoose }: { filter: Filter; onChoose(choice: Partial<Filter>): void }) {
  const [from, setFrom] = useState(toLocal(filter.from));
  const [to, setTo] = useState(toLocal(filter.to));
  const [wrong, setWrong] = useState<string | null>(null);

  function apply(): void {
    if (from === "" && to === "") setWrong("Enter a start or an end.");
    else if (from !== "" && to !== "" && from > to) setWrong("From must not be later than To.");
    else onChoose({ span: "custom", from: toIso(from), to: toIso(to, restOfMinuteMs) });
  }

  return (
    <form
      class="typed-choice"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
    >
      <Field label="From" type="datetime-local" value={from} onType={setFrom} wrong={wrong} />
      <Field label="To" type="datetime-local" value={to} onType={setTo} />
      <Button type="submit">Show</Button>
    </form>
  );
}
