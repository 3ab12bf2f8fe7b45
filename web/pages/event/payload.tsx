import { useMemo, useState } from "preact/hooks";
import { showControls } from "../../format/controls.ts";
import { bytes } from "../../format/number.ts";
import { Button } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Json } from "../../parts/json.tsx";
import { formatJson, textOf, tokenizeJson } from "../../payload/json-tokens.ts";

/**
 * Each coloured token is an element of its own: this many characters a browser lays out in one go without a noticeable
 * delay.
 */
const longestAtOnce = 24_000;

/** The payload as submitted, byte for byte, or laid out for reading; numbers and repeated keys stay as they are in both. */
export function Payload({ text }: { text: string }) {
  const [isFormatted, setFormatted] = useState(true);
  const [isWhole, setWhole] = useState(false);
  const shown = useMemo(() => (isFormatted ? textOf(formatJson(tokenizeJson(text))) : text), [text, isFormatted]);
  const isLong = shown.length > longestAtOnce;
  return (
    <section class="panel payload" aria-labelledby="payload-title">
      <header>
        <h2 id="payload-title">Payload</h2>
        <div class="end buttons">
          {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields of a form */}
          <div class="segments" role="group" aria-label="How the payload is shown">
            <button type="button" aria-pressed={isFormatted} onClick={() => setFormatted(true)}>
              Formatted
            </button>
            <button type="button" aria-pressed={!isFormatted} onClick={() => setFormatted(false)}>
              As sent
            </button>
          </div>
          <Copy text={text} what="the payload as sent" label="Copy" />
        </div>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section tabIndex={0} class="payload-text" aria-label="Payload, as submitted">
        <pre class={isFormatted ? "" : "as-sent"}>
          <Json text={isLong ? shown.slice(0, longestAtOnce) : shown} />
          {isLong && isWhole && showControls(shown.slice(longestAtOnce))}
        </pre>
      </section>
      {isLong && !isWhole && (
        <p class="payload-more">
          <span class="soft">Only the beginning is shown.</span>
          <Button onClick={() => setWhole(true)}>Show all {bytes(new Blob([text]).size)}</Button>
        </p>
      )}
    </section>
  );
}
