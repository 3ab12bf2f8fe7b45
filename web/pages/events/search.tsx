import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { ApiError, call } from "../../api/client.ts";
import { Icon } from "../../parts/icon.tsx";
import { useShortcuts } from "../../parts/keyboard.tsx";
import { longestSearch } from "./filter.ts";
import { openFrom } from "./left-lists.ts";

/** An id anywhere in the text: people paste log lines. */
const idIn = (text: string) => /evt_[0-9a-z]{26}(?![0-9a-z])/i.exec(text)?.[0].toLowerCase();

/** Searches payloads for a text, or ids for a part; a whole id opens its event. */
export function Search({
  text,
  onSearch,
  onTyping,
}: {
  text: string;
  onSearch(text: string): void;
  /** What is typed is not what is listed, or is again. */
  onTyping(isTyping: boolean): void;
}) {
  const { route, url, path } = useLocation();
  const input = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState(text);
  const [wrong, setWrong] = useState<string | null>(null);
  // Before anybody can type again: an effect after the next frame would erase what was typed in between.
  useLayoutEffect(() => setTyped(text), [text]);
  const isTyping = typed.trim() !== text;
  useLayoutEffect(() => onTyping(isTyping), [isTyping]);
  useShortcuts([{ keys: "/", does: "Search payloads and ids", run: () => input.current?.focus() }]);

  function search(wanted: string): void {
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
        const id = idIn(typed);
        if (id === undefined) search(typed.trim());
        else void open(id);
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
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          // The browser would empty the field.
          event.preventDefault();
          // At once, because it loses the focus before it is shown again.
          event.currentTarget.value = text;
          setTyped(text);
        }}
        onBlur={({ currentTarget }) => {
          setWrong(null);
          const { value } = currentTarget;
          // It also loses the focus to another window, and as it goes with the page.
          const isLeft = document.activeElement !== currentTarget && location.pathname === path;
          if (isLeft && value.trim() !== text) search(idIn(value) ?? value.trim());
        }}
      />
      <kbd>/</kbd>
      <p id="event-search-wrong" class="wrong" role="alert">
        {wrong}
      </p>
    </form>
  );
}
