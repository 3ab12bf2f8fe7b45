import { showControls } from "../format/controls.ts";

/**
 * Rules, section 7: the log keeps this many bytes of a response. One that was cut inside a character may be slightly
 * shorter.
 */
const keptBytes = 4096;
const longestCharacter = 4;

/** The receiver's response, with a note when there may have been more. */
export function AnswerBody({ text }: { text: string }) {
  const mayBeCut = new Blob([text]).size > keptBytes - longestCharacter;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre class="answer-body" tabIndex={0}>
        {showControls(text)}
      </pre>
      {mayBeCut && <p class="answer-cut soft small">Cut here: only the first 4 KiB of a response are kept.</p>}
    </>
  );
}
