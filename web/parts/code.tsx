import "./code.css";
import { showControls } from "../format/controls.ts";
import { Copy } from "./copy.tsx";

/**
 * A text to be taken along. It is shown as text, whatever it holds.
 * @param copied instead of what is shown, as where a secret is masked
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
  /** Shown in lines as long as there is room; copied as it is. */
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
