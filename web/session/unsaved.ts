import { effect, signal } from "@preact/signals";
import { isSignedIn, noSession } from "../api/session.ts";

/** Changes that wait for "Save" in some view. They outlive the view, but not the tab. */
export const unsaved = signal<{ readonly path: string; readonly text: string } | null>(null);

/** Lets the browser ask before it throws them away. */
export function guardUnsaved(): void {
  const ask = (event: BeforeUnloadEvent) => event.preventDefault();
  effect(() => {
    if (unsaved.value === null) return;
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  });
  effect(() => {
    // Whoever signs out leaves them; whose session ran out is back in a moment.
    if (!isSignedIn.value && noSession.value !== "ended") unsaved.value = null;
  });
}
