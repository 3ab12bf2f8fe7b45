import { effect, signal } from "@preact/signals";
import { isSignedIn, noSession } from "../api/session.ts";

/** Changes waiting for "Save" in some view. They outlive the view, but not the tab. */
export const unsaved = signal<{ readonly path: string; readonly text: string } | null>(null);

/** Makes the browser ask before it discards them. */
export function guardUnsaved(): void {
  const ask = (event: BeforeUnloadEvent) => event.preventDefault();
  effect(() => {
    if (unsaved.value === null) return;
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  });
  effect(() => {
    // Signing out abandons them; a user whose session ran out will be back in a moment.
    if (!isSignedIn.value && noSession.value !== "ended") unsaved.value = null;
  });
}
