import "./new-password.css";
import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import { isGoodPassword, passwordRules } from "../password/rules.ts";
import { Field } from "./field.tsx";
import { readForm } from "./form.ts";
import { Icon } from "./icon.tsx";

/** A field for a new password, with its rules, each ticked as soon as it is met. */
export function NewPassword({ label, name, wrong }: { label: string; name: string; wrong: string | null }) {
  const [typed, setTyped] = useState("");
  return (
    <div class="new-password">
      <Field
        label={label}
        name={name}
        type="password"
        autocomplete="new-password"
        onType={setTyped}
        wrong={wrong}
        required
      />
      <ul aria-label="Password rules">
        {passwordRules.map(({ text, holds }) => {
          const isMet = holds(typed);
          return (
            <li key={text} class={isMet ? "is-met" : ""}>
              <Icon name={isMet ? "check" : "ring"} />
              {text}
              <span class="visually-hidden">{isMet ? ": yes" : ": not yet"}</span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** Blocks a form until its new password meets every rule: says so, and moves the focus there. */
export function useNewPassword(form: RefObject<HTMLFormElement | null>, name: string) {
  const [isWeak, setWeak] = useState(false);
  function isGood(): boolean {
    const good = isGoodPassword(readForm(form.current)[name] ?? "");
    setWeak(!good);
    if (!good) form.current?.querySelector<HTMLInputElement>(`input[name=${name}]`)?.focus();
    return good;
  }
  return { isGood, wrong: isWeak ? "The password does not meet all of these rules yet." : null };
}
