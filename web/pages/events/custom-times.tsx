import { useState } from "preact/hooks";
import { timeForms } from "../../format/typed-time.ts";
import { Button } from "../../parts/button.tsx";
import { TimeField } from "../../parts/time-field.tsx";
import type { Filter } from "./filter.ts";

/** Takes effect once complete: half a date would be a different one. */
export function CustomTimes({ filter, onChoose }: { filter: Filter; onChoose(choice: Partial<Filter>): void }) {
  const [from, setFrom] = useState<string | null>(filter.from);
  const [to, setTo] = useState<string | null>(filter.to);
  const [wrong, setWrong] = useState<{ side: "from" | "to"; text: string } | null>(null);

  function apply(): void {
    const fault = (text: string, side: "from" | "to" = "from") => setWrong({ side, text });
    if (from === null || to === null) fault(`Write it as ${timeForms}.`, from === null ? "from" : "to");
    else if (from === "" && to === "") fault("Enter a start or an end.");
    else if (from !== "" && to !== "" && from > to) fault("The range starts after it ends.");
    else onChoose({ span: "custom", from, to });
  }

  const wrongAt = (side: "from" | "to") => (wrong?.side === side ? wrong.text : null);

  return (
    <form
      class="typed-choice"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
    >
      <TimeField label="From" side="from" value={from ?? ""} onChange={setFrom} wrong={wrongAt("from")} />
      <TimeField label="To" side="to" value={to ?? ""} onChange={setTo} wrong={wrongAt("to")} />
      <Button type="submit">Show</Button>
    </form>
  );
}
