import { useState } from "preact/hooks";
import { fromTyped, textOf, timeForms, toTyped } from "../format/typed-time.ts";
import { isUtc, zoneName } from "../format/zone.ts";
import { Field } from "./field.tsx";
import { now } from "./time.tsx";

const placeholder = "2026-03-01 13:30";

/** A time that is typed, on a 24-hour clock. */
export function TimeField({
  label,
  side,
  value,
  onChange,
  wrong = null,
}: {
  label: string;
  /** The side of the range that it bounds. */
  side: "from" | "to";
  /** ISO 8601; "": none. */
  value: string;
  /** @param iso null: the text is not a time */
  onChange(iso: string | null): void;
  wrong?: string | null;
}) {
  const [typed, setTyped] = useState({ text: toTyped(value, side), iso: value, isUtc: isUtc.peek() });
  const text = textOf(typed, value, side);
  return (
    <Field
      label={label}
      value={text}
      autocomplete="off"
      placeholder={placeholder}
      hint={`${timeForms}, ${zoneName(now.peek())}`}
      wrong={
        fromTyped(text, side, now.peek()) === null && text.length >= placeholder.length
          ? `Write it as ${timeForms}.`
          : wrong
      }
      onType={(given) => {
        const iso = fromTyped(given, side, now.peek());
        setTyped({ text: given, iso: iso ?? "", isUtc: isUtc.peek() });
        onChange(iso);
      }}
    />
  );
}
