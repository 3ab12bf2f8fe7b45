import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { ApiError, call } from "../../api/client.ts";
import { Icon } from "../../parts/icon.tsx";
import { useShortcuts } from "../../parts/keyboard.tsx";
import { longestSearch } from "./filter.ts";
import { openFrom } from "./left-lists.ts";

/** An id anywhere in the text: people paste log lines. */
const idPattern = /evt_[0-9a-z]{26}(?![0-9a-z])/i;

/** Searches payloads for a text, or ids for a part; a whole id opens its event. */
export function Search({ text, onSearch }: { text: string; onSearch(text: string): void }) {
  const { route, url } = useLocation();
  const input = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(text);
  const [wrong, setWrong] = useState<string | null>(null);
  // Before anybody can type again: an effect after the next frame would erase what was typed in between.
  useLayoutEffect(() => setTyped(text), [text]);
  useShortcuts([{ keys: "/", does: "Search payloads and ids", run: () => input.current?.focus() }]);

  async function search(): Promise<void> {
    const wanted = typed.trim();
    const id = idPattern.exec(wanted)?.[0].toLowerCase();
    if (id !== undefined) return open(id);
    if (wanted.length > longestSearch) setWrong(`Search for at most ${longestSearch} characters.`);
    else onSearch(wanted);
  }

  async function open(id: string): Promise<void> {
    try {
      await call(`/v1/events/${id}/attempts`, { query: { size: 1 } });
      openFrom(url);
      route(`/events/${id}`);
    } catch (error) {
      setWrong(error instanceof ApiError ? error.message : String(error));
    }
  }

  return (
    <form
      class="event-search"
      onSubmit={(event) => {
        event.preventDefault();
        void search();
      }}
    >
      <Icon name="search" />
      <input
        ref={input}
        class="input"
        type="search"
        name="q"
        value={typed}
        aria-label="Search payloads and ids"
        placeholder="Search payloads and ids"
        autocomplete="off"
        enterkeyhint="search"
        spellcheck={false}
        aria-invalid={wrong !== null}
        aria-describedby="event-search-wrong"
        onInput={({ currentTarget: { value } }) => {
          setWrong(null);
          setTyped(value);
          // Emptied, perhaps by the field's own clear button: there is nothing to wait for.
          if (value === "" && text !== "") onSearch("");
        }}
        onBlur={() => setWrong(null)}
      />
      <kbd>/</kbd>
      <p id="event-search-wrong" class="wrong" role="alert">
        {wrong}
      </p>
    </form>
  );
}
