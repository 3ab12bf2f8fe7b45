import { type ComponentChildren, h } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  label: string;
  /** Names the value in the form's data. */
  name?: string;
  type?: "text" | "password" | "email" | "url" | "number" | "search";
  value?: string;
  /** What is in it until somebody types; the page does not follow it. */
  defaultValue?: string;
  onType?(value: string): void;
  hint?: ComponentChildren;
  /** What is wrong with it, in the server's words. */
  wrong?: string | null;
  placeholder?: string;
  autocomplete?: string;
  required?: boolean;
  min?: number;
  max?: number;
}

/** A field with its label, a hint, and what is wrong with it. */
export function Field({ label, hint, wrong = null, type = "text", onType, ...given }: FieldProps) {
  const id = useId();
  const input = {
    ...given,
    id,
    type,
    "aria-invalid": wrong !== null,
    "aria-describedby": `${id}-more`,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => onType?.(currentTarget.value),
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {/* With `h`, because in JSX TypeScript wants a separate case for each input type. */}
      {h("input", input)}
      <span id={`${id}-more`} class={wrong === null ? "hint" : "wrong"}>
        {wrong ?? hint}
      </span>
    </div>
  );
}

/** Multi-line text. */
export function Area({
  label,
  hint,
  wrong = null,
  rows = 8,
  value,
  placeholder,
  onType,
}: Pick<FieldProps, "label" | "hint" | "wrong" | "placeholder"> & {
  rows?: number;
  value: string;
  onType(value: string): void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={rows}
        spellcheck={false}
        autocomplete="off"
        placeholder={placeholder}
        aria-invalid={wrong !== null}
        aria-describedby={`${id}-more`}
        value={value}
        onInput={({ currentTarget }) => onType(currentTarget.value)}
      />
      <span id={`${id}-more`} class={wrong === null ? "hint" : "wrong"}>
        {wrong ?? hint}
      </span>
    </div>
  );
}

/** A choice among a few options, using the browser's own control: it works with every keyboard and every phone. */
export function Choice({
  label,
  options,
  value,
  onChoose,
  isLabelHidden = false,
}: {
  label: string;
  options: readonly { value: string; text: string }[];
  value: string;
  onChoose(value: string): void;
  isLabelHidden?: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? "visually-hidden" : ""}>
        {label}
      </label>
      <select id={id} value={value} onChange={({ currentTarget }) => onChoose(currentTarget.value)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    </div>
  );
}
