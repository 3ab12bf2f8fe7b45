import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Dialog } from "./dialog.tsx";
import { useReadOnly } from "./read-only.ts";

/** A key, or two in sequence (`g e`), and what they do. */
export interface Shortcut {
  readonly keys: string;
  readonly does: string;
  /** As for a button; a key that is held down does not repeat it. */
  readonly changes?: boolean;
  run(): void;
}

const active = signal<readonly (readonly Shortcut[])[]>([]);
const isHelpOpen = signal(false);
/** How long the second of two keys may take. */
const sequenceMs = 1200;

/** Shortcuts of a part of the page, for as long as it is shown. The most recent part is asked first. */
export function useShortcuts(given: readonly Shortcut[]): void {
  const isReadOnly = useReadOnly() !== null;
  const shortcuts = given.filter(({ changes = false }) => !changes || !isReadOnly);
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  const names = shortcuts.map(({ keys, does, changes = false }) => `${keys}\t${does}\t${changes}`).join("\n");
  useEffect(() => {
    const mine = names.split("\n").flatMap((line, i): Shortcut[] => {
      const [keys = "", does = "", changes] = line.split("\t");
      return keys === "" ? [] : [{ keys, does, changes: changes === "true", run: () => latest.current[i]?.run() }];
    });
    active.value = [mine, ...active.peek()];
    return () => {
      active.value = active.peek().filter((other) => other !== mine);
    };
  }, [names]);
}

/** Listens for the whole page, except while the user types into a field or has a dialog open. */
export function listenToKeys(): void {
  let first = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isElsewhere(event)) return;
    if (event.key === "?") {
      isHelpOpen.value = true;
      return;
    }
    const all = active.value.flat();
    const keys = first === "" ? event.key : `${first} ${event.key}`;
    const found = all.find((shortcut) => shortcut.keys === keys) ?? all.find(({ keys: own }) => own === event.key);
    clearTimeout(timer);
    first = "";
    if (found) {
      event.preventDefault();
      if (!event.repeat || !found.changes) found.run();
    } else if (all.some((shortcut) => shortcut.keys.startsWith(`${event.key} `))) {
      first = event.key;
      timer = setTimeout(() => {
        first = "";
      }, sequenceMs);
    }
  });
}

function isElsewhere({ key, target }: KeyboardEvent): boolean {
  if (document.querySelector("dialog[open]")) return true;
  if (!(target instanceof HTMLElement)) return false;
  // Enter on a link or a button belongs to the browser.
  if (key === "Enter" && target.closest("a, button, summary")) return true;
  return target.closest("input, select, textarea, [contenteditable]") !== null && key !== "Escape";
}

/** All shortcuts that work here and now. */
export function ShortcutHelp() {
  if (!isHelpOpen.value) return null;
  return (
    <Dialog
      title="Keyboard shortcuts"
      asksNothing
      onClose={() => {
        isHelpOpen.value = false;
      }}
    >
      <dl class="keys">
        {[...active.value.flat(), { keys: "?", does: "Show these shortcuts" }].map(({ keys, does }) => (
          <>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}
