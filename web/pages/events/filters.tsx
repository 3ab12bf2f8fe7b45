import { useId, useState } from "preact/hooks";
import type { Webhook } from "../../api/types.ts";
import { failureCodes, reasonInWords } from "../../format/failure.ts";
import { Button } from "../../parts/button.tsx";
import { Choice, Field } from "../../parts/field.tsx";
import { Icon } from "../../parts/icon.tsx";
import { chipsOf, spanWords, stateWords, webhookInWords } from "./chips.ts";
import { CustomTimes } from "./custom-times.tsx";
import { everything, type Filter, isStatus } from "./filter.ts";
import { isCalled } from "./receivers.ts";
import { Search } from "./search.tsx";
import type { Seen } from "./seen.ts";

interface FiltersProps {
  filter: Filter;
  /** Undefined until they are known. */
  webhooks: readonly Webhook[] | undefined;
  /** The values to choose from, as far as they are known. */
  seen: Seen;
  onChoose(choice: Partial<Filter>): void;
  /** As in `Search`. */
  onTyping(isTyping: boolean): void;
}

/** Values without an entry in a choice are typed. */
type Typed = "type" | "status" | "time";

const other = "other";

const optionsOf = (words: Readonly<Record<string, string>>) =>
  Object.entries(words).map(([value, text]) => ({ value, text }));

/** Which part of the history is shown. On a phone it is collapsed until somebody wants to change it. */
export function Filters(props: FiltersProps) {
  const { filter, webhooks, onChoose, onTyping } = props;
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const chips = chipsOf(filter, webhooks);
  return (
    <div class="events-filters">
      <Search text={filter.q} onSearch={(q) => onChoose({ q })} onTyping={onTyping} />
      <Button class="filters-fold" aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        {chips.length === 0 ? "Filters" : `Filters (${chips.length})`}
      </Button>
      <div id={id} class={`filter-fields ${isOpen ? "is-open" : ""}`}>
        <Fields {...props} />
      </div>
      {chips.length > 0 && (
        <ul class={`chips ${isOpen ? "is-beside-fields" : ""}`} aria-label="Active filters">
          {chips.map(({ text, without }) => (
            <li key={text}>
              <button type="button" class="chip" title="Remove this filter" onClick={() => onChoose(without)}>
                <span>{text}</span>
                <span class="visually-hidden">, remove</span>
                <Icon name="cross" />
              </button>
            </li>
          ))}
          {chips.length > 1 && (
            <li>
              <Button kind="quiet" onClick={() => onChoose(everything)}>
                Clear all
              </Button>
            </li>
          )}
        </ul>
      )}
    </div>
  );
}

function Fields({ filter, webhooks, seen, onChoose }: Omit<FiltersProps, "onTyping">) {
  const [typing, setTyping] = useState<Typed | null>(null);
  const { state, type, webhook, code, status, span } = filter;

  /** Typed values take effect once they are complete. */
  function choose(value: string, typed: Typed, choiceOf: (value: string) => Partial<Filter>): void {
    setTyping(value === other ? typed : null);
    if (value !== other) onChoose(choiceOf(value));
  }

  function apply(choice: Partial<Filter>): void {
    setTyping(null);
    onChoose(choice);
  }

  const reason = `${code} ${status}`.trim();
  const isCustom = typing === "time" || (typing === null && span === "custom");
  return (
    <>
      <Choice
        label="State"
        isLabelHidden
        options={optionsOf(stateWords)}
        value={state}
        onChoose={(value) => onChoose({ state: value as Filter["state"] })}
      />
      <Choice
        label="Event type"
        isLabelHidden
        options={[
          { value: "", text: "Any type" },
          ...[...new Set([...seen.types, type])].filter(Boolean).map((each) => ({ value: `=${each}`, text: each })),
          { value: other, text: "Another type …" },
        ]}
        value={typing === "type" ? other : type && `=${type}`}
        onChoose={(value) => choose(value, "type", (chosen) => ({ type: chosen.slice(1) }))}
      />
      <Choice
        label="Webhook"
        isLabelHidden
        options={[{ value: "", text: "Any webhook" }, ...webhookOptions(webhook, webhooks)]}
        value={webhooks?.find(({ url }) => url === webhook)?.id ?? webhook}
        onChoose={(chosen) => onChoose({ webhook: chosen })}
      />
      <Choice
        label="Reason"
        isLabelHidden
        options={[
          { value: "", text: "Any reason" },
          ...reasonOptions(reason, seen.statuses),
          { value: other, text: "Another HTTP status …" },
        ]}
        value={typing === "status" ? other : reason}
        onChoose={(value) => choose(value, "status", toReason)}
      />
      <Choice
        label="Time"
        isLabelHidden
        options={optionsOf(spanWords)}
        value={isCustom ? "custom" : span}
        onChoose={(value) => {
          setTyping(value === "custom" ? "time" : null);
          if (value !== "custom") onChoose({ span: value as Filter["span"], from: "", to: "" });
        }}
      />
      {typing === "type" && (
        <TypedChoice
          label="Event type, exactly"
          placeholder="order.paid"
          judge={(text) => (text === "" ? "Enter a type." : null)}
          onApply={(text) => apply({ type: text })}
        />
      )}
      {typing === "status" && (
        <TypedChoice
          label="HTTP status"
          placeholder="503"
          judge={(text) => (isStatus(text) ? null : "Enter a status from 100 to 999.")}
          onApply={(text) => apply(toReason(text))}
        />
      )}
      {isCustom && <CustomTimes key={`${filter.from} ${filter.to}`} filter={filter} onChoose={apply} />}
    </>
  );
}

/** In the form that `reasonOptions` writes: a code, a status, or both. */
function toReason(value: string): Pick<Filter, "code" | "status"> {
  const parts = value.split(" ");
  return {
    code: parts.find((part) => part !== "" && !isStatus(part)) ?? "",
    status: parts.find((part) => isStatus(part)) ?? "",
  };
}

function reasonOptions(chosen: string, statuses: readonly string[]): { value: string; text: string }[] {
  const values = [...new Set([...statuses, ...failureCodes, chosen])].filter((value) => value !== "");
  return values.map((value) => {
    const { code, status } = toReason(value);
    return { value, text: reasonInWords(code, status) };
  });
}

/** A chosen webhook that is no longer registered still shows as chosen. */
function webhookOptions(chosen: string, webhooks: readonly Webhook[] | undefined) {
  const options = (webhooks ?? []).map(({ id }) => ({ value: id, text: webhookInWords(id, webhooks) }));
  const isKnown = chosen === "" || webhooks?.some(isCalled(chosen));
  return isKnown ? options : [...options, { value: chosen, text: webhookInWords(chosen, undefined) }];
}

function TypedChoice({
  label,
  placeholder,
  judge,
  onApply,
}: {
  label: string;
  placeholder: string;
  /** What is wrong with it; null: nothing. */
  judge(text: string): string | null;
  onApply(text: string): void;
}) {
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  return (
    <form
      class="typed-choice"
      onSubmit={(event) => {
        event.preventDefault();
        const fault = judge(text.trim());
        setWrong(fault);
        if (fault === null) onApply(text.trim());
      }}
    >
      <Field label={label} value={text} onType={setText} placeholder={placeholder} autocomplete="off" wrong={wrong} />
      <Button type="submit">Show</Button>
    </form>
  );
}
