import "./choices.css";
import type { ComponentChildren } from "preact";

export interface Option {
  readonly value: string;
  readonly text: string;
  /** Next to it, at the end of its line. */
  readonly aside?: string;
  readonly hint?: ComponentChildren;
}

/** A choice among a few options that need a line each, all visible together. */
export function Choices({
  legend,
  name,
  options,
  value,
  onChoose,
  isFocused = false,
}: {
  legend: string;
  /** Names the value in the form's data. */
  name: string;
  options: readonly Option[];
  value: string;
  onChoose(value: string): void;
  /** At the top of a dialog: the browser would focus the first option there, chosen or not. */
  isFocused?: boolean;
}) {
  return (
    <fieldset class="choices">
      <legend>{legend}</legend>
      {options.map((option) => (
        <label key={option.value} class="choice">
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChoose(option.value)}
            {...(isFocused && option.value === value && { autofocus: true })}
          />
          <span>
            <span class="what">{option.text}</span>
            {option.aside !== undefined && <span>{option.aside}</span>}
          </span>
          {option.hint !== undefined && <span class="soft">{option.hint}</span>}
        </label>
      ))}
    </fieldset>
  );
}
