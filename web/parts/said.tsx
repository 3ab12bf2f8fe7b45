import { signal } from "@preact/signals";

/** What was just done, or why it failed: shown for a while, and read out by screen readers. */
const said = signal<{ text: string; tone: "good" | "bad"; link: SaidLink | null } | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;

const shownMs = 6000;

/** Where to continue after what was just done. */
export interface SaidLink {
  readonly href: string;
  readonly text: string;
}

export function say(text: string, tone: "good" | "bad" = "good", link: SaidLink | null = null): void {
  said.value = { text, tone, link };
  clearTimeout(timer);
  timer = setTimeout(() => {
    said.value = null;
  }, shownMs);
}

export function Said() {
  const now = said.value;
  return (
    <div role="status" aria-live="polite">
      {now && (
        <div class={`said ${now.tone}`}>
          <bdi>{now.text}</bdi> {now.link && <a href={now.link.href}>{now.link.text}</a>}
        </div>
      )}
    </div>
  );
}
