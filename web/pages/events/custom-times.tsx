import { useState } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import { TimeField } from "../../parts/time-field.tsx";
import type { Filter } from "./filter.ts";

/** Takes effect once complete: half a date would be a different one. */
export function CustomTimes({ filter, onChoose }: { filter: Filter; onChoose(choice: Partial<Filter>): void }) {
  const [from, setFrom] = useState<string | null>(filter.from);
  const [to, setTo] = useState<string | null>(filter.to);
  const [wrong, setWrong] = useState<string | null>(null);

  function apply(): void {
    if (from === null || to === null) setWrong("Complete the times.");
    else if (from === "" && to === "") setWrong("Enter a start or an end.");
    else if (from !== "" && to !== "" && from > to) setWrong("From must not be later than To.");
    else onChoose({ span: "custom", from, to });
  }

  return (
    <form
      class="typed-choice"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
    >
      <TimeField label="From" side="from" value={from ?? ""} onChange={setFrom} wrong={wrong} />
      <TimeField label="To" side="to" value={to ?? ""} onChange={setTo} />
      <Button type="submit">Show</Button>
    </form>
  );
}
