import { signal } from "@preact/signals";

/** What was just done, or why it was not: shown for a while and read out to those who cannot see it. */
const said = signal<{ text: string; tone: "good" | "bad" } | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;

const shownMs = 6000;

export function say(text: string, tone: "good" | "bad" = "good"): void {
  said.value = { text, tone };
  clearTimeout(timer);
  timer = setTimeout(() => {
    said.value = null;
  }, shownMs);
}

export function Said() {
  const now = said.value;
  return (
    <div role="status" aria-live="polite">
      {now && <div class={`said ${now.tone}`}>{now.text}</div>}
    </div>
  );
}
