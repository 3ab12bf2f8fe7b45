import "./code.css";
import { showControls } from "../format/controls.ts";
import { Copy } from "./copy.tsx";

/**
 * A text to be copied. It is shown as plain text, whatever it contains.
 * @param copied instead of what is shown, such as where a secret is masked
 */
export function Code({
  text,
  copied = text,
  isWrapped = false,
  what,
  label,
}: {
  text: string;
  copied?: string;
  /** Shown wrapped to fit; copied as is. */
  isWrapped?: boolean;
  what: string;
  label?: string;
}) {
  return (
    <div class={isWrapped ? "code wrapped" : "code"}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section tabIndex={0} aria-label={label ?? what}>
        <pre>{showControls(text)}</pre>
      </section>
      <Copy text={copied} what={what} label="Copy" />
    </div>
  );
}
