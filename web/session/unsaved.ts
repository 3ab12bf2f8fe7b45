import { effect, signal } from "@preact/signals";
import { accountId, noSession } from "../api/session.ts";
import type { CreatedTenant } from "../api/types.ts";

/** Changes waiting for "Save", by the path of their view. They outlive the view, but not the tab. */
export const unsaved = signal<Readonly<Record<string, string>>>({});

/** A free account whose password nobody may have saved yet: the server has told it once. Kept until somebody signs in. */
export const newAccount = signal<CreatedTenant | null>(null);

/** @param text what the user is told elsewhere; null: nothing of that view is waiting */
export function noteUnsaved(path: string, text: string | null): void {
  const { [path]: _, ...others } = unsaved.peek();
  unsaved.value = text === null ? others : { ...others, [path]: text };
}

/** Makes the browser ask before it discards them. */
export function guardUnsaved(): void {
  const ask = (event: BeforeUnloadEvent) => event.preventDefault();
  effect(() => {
    if (Object.keys(unsaved.value).length === 0 && newAccount.value === null) return;
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  });
  let owner = "";
  effect(() => {
    // Signing out abandons them, and so does another account; a user whose session ran out will be back in a moment.
    if (noSession.value === "ended" || accountId.value === owner) return;
    owner = accountId.value;
    unsaved.value = {};
    newAccount.value = null;
  });
}
