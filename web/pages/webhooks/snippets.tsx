import { useLocation } from "preact-iso/router";
import { Code } from "../../parts/code.tsx";
import { type Snippet, type SnippetValues, snippets } from "../../verify/snippets.ts";

/** Receivers that verify each delivery, ready to run. The chosen language is kept in the URL. */
export function Snippets({ values }: { values: SnippetValues }) {
  const { path, query, route } = useLocation();
  const all = snippets(values);
  const chosen = all.find(({ language }) => slugOf(language) === query.language) ?? all[0];
  if (!chosen) return null;
  return (
    <div class="stack">
      <div class="buttons">
        <fieldset class="segments" aria-label="Language">
          {all.map(({ language }) => (
            <button
              key={language}
              type="button"
              aria-pressed={language === chosen.language}
              onClick={() => route(`${path}?language=${slugOf(language)}`, true)}
            >
              {language}
            </button>
          ))}
        </fieldset>
        <span class="mono soft small">{chosen.file}</span>
      </div>
      <Code text={chosen.code} what={chosen.file} label={`Receiver in ${chosen.language}`} isWrapped />
      {chosen.language === "Python" && values.signingSecret === undefined && (
        <p class="soft small">
          It reads the secret from <code>SIGNING_SECRET</code>. Reveal the secret above to have it filled in.
        </p>
      )}
    </div>
  );
}

const slugOf = (language: Snippet["language"]) => language.toLowerCase();
