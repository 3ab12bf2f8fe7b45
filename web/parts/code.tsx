import { Copy } from "./copy.tsx";

/** A text to be taken along. It is shown as text, whatever it holds. */
export function Code({ text, what, label }: { text: string; what: string; label?: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section tabIndex={0} aria-label={label ?? what}>
        <pre>{text}</pre>
      </section>
      <Copy text={text} what={what} label="Copy" />
    </div>
  );
}
