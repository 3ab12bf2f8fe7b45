import { useMemo } from "preact/hooks";
import { showControls } from "../format/controls.ts";
import { formatJson, tokenizeJson } from "../payload/json-tokens.ts";

/** Beyond this, colours cost more than they help. */
const longestColoured = 64_000;

/** JSON in colours, as text only: as is, or laid out. */
export function Json({ text, isFormatted = false }: { text: string; isFormatted?: boolean }) {
  const tokens = useMemo(() => {
    if (text.length > longestColoured && !isFormatted) return null;
    const read = tokenizeJson(text);
    return isFormatted ? formatJson(read) : read;
  }, [text, isFormatted]);
  if (tokens === null) return <>{showControls(text)}</>;
  if (text.length > longestColoured) return <>{showControls(tokens.map((token) => token.text).join(""))}</>;
  return (
    <>
      {tokens.map(({ kind, text: part }, i) =>
        kind === "space" || kind === "punctuation" ? (
          part
        ) : (
          <span key={i} class={`json-${kind}`}>
            {showControls(part)}
          </span>
        ),
      )}
    </>
  );
}
