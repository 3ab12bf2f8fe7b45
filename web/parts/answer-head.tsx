import type { Attempt } from "../api/types.ts";
import { showControls } from "../format/controls.ts";

type Head = Pick<Attempt, "responseHeaders" | "responseHeadersAreCut" | "address">;

/** Who responded, and with which headers; nothing for an attempt whose headers were not kept. */
export function AnswerHead({ responseHeaders, responseHeadersAreCut, address }: Head) {
  if (!responseHeaders) return null;
  const lines = responseHeaders.map(({ name, value }) => `${name}: ${value}`);
  return (
    <div class="answer-head">
      {address && (
        <p class="soft small">
          Answered by <span class="mono">{address}</span>
        </p>
      )}
      {lines.length > 0 && (
        /* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */
        <section class="answer-headers" tabIndex={0} aria-label="Headers of the response">
          <pre>{showControls(lines.join("\n"))}</pre>
        </section>
      )}
      {responseHeadersAreCut && <p class="soft small">More headers came: only the first 4 KiB are kept.</p>}
    </div>
  );
}

/** How long the receiver asked us to wait, in its own words. */
export const retryAfterOf = ({ responseHeaders = [] }: Head): string | null =>
  responseHeaders.find(({ name }) => name.toLowerCase() === "retry-after")?.value ?? null;
