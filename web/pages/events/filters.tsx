import { useState } from "preact/hooks";
import type { Webhook } from "../../api/types.ts";
import { shortenUrl } from "../../format/shorten.ts";
import { Button } from "../../parts/button.tsx";
import { Choice, Field } from "../../parts/field.tsx";
import type { Filter, Span, StateChoice } from "./filter.ts";

const states: readonly { value: StateChoice; text: string }[] = [
  { value: "", text: "All states" },
  { value: "delivered", text: "Delivered" },
  { value: "waiting", text: "Waiting" },
  { value: "failed", text: "Failed" },
];

const spans: readonly { value: Span; text: string }[] = [
  { value: "", text: "Any time" },
  { value: "1h", text: "Last hour" },
  { value: "24h", text: "Last 24 hours" },
  { value: "7d", text: "Last 7 days" },
  { value: "custom", text: "Custom range" },
];

interface FiltersProps {
  filter: Filter;
  /** Undefined until they are known. */
  webhooks: readonly Webhook[] | undefined;
  onChoose(choice: Partial<Filter>): void;
}

/** What of the history is shown: by state, webhook and time. */
export function Filters({ filter, webhooks, onChoose }: FiltersProps) {
  const [isTyping, setTyping] = useState(false);
  const isCustom = filter.span === "custom" || isTyping;

  function chooseSpan(value: string): void {
    const span = spans.find((option) => option.value === value)?.value ?? "";
    setTyping(span === "custom");
    if (span !== "custom") onChoose({ span, from: "", to: "" });
  }

  return (
    <>
      <Choice
        label="State"
        isLabelHidden
        options={states}
        value={filter.state}
        onChoose={(value) => onChoose({ state: states.find((option) => option.value === value)?.value ?? "" })}
      />
      <Choice
        label="Webhook"
        isLabelHidden
        options={[{ value: "", text: "Any webhook" }, ...webhookOptions(filter.webhook, webhooks)]}
        value={webhooks?.find(({ url }) => url === filter.webhook)?.id ?? filter.webhook}
        onChoose={(webhook) => onChoose({ webhook })}
      />
      <Choice
        label="Time"
        isLabelHidden
        options={spans}
        value={isCustom ? "custom" : filter.span}
        onChoose={chooseSpan}
      />
      {isCustom && (
        <CustomTimes
          key={`${filter.from} ${filter.to}`}
          filter={filter}
          onChoose={(times) => {
            setTyping(false);
            onChoose(times);
          }}
        />
      )}
    </>
  );
}

/** A webhook that was chosen and is no longer registered can still be seen to be chosen. */
function webhookOptions(chosen: string, webhooks: readonly Webhook[] | undefined) {
  const options = (webhooks ?? []).map(({ id, url, name }) => ({ value: id, text: name || shortenUrl(url, 40) }));
  const isKnown = chosen === "" || webhooks?.some(({ id, url }) => id === chosen || url === chosen);
  return isKnown ? options : [...options, { value: chosen, text: shortenUrl(chosen, 40) }];
}

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
function CustomTimes({ filter, onChoose }: Pick<FiltersProps, "filter" | "onChoose">) {
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
      class="custom-times"
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
