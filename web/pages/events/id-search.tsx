import { useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { ApiError, call } from "../../api/client.ts";
import { Icon } from "../../parts/icon.tsx";
import { useShortcuts } from "../../parts/keyboard.tsx";
import { openFrom } from "./left-lists.ts";

/** An id wherever it stands: people paste lines of logs. */
const idPattern = /evt_[0-9a-z]{26}(?![0-9a-z])/i;

/** Goes to the event whose id is typed or pasted. */
export function IdSearch() {
  const { route, url } = useLocation();
  const input = useRef<HTMLInputElement>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  useShortcuts([{ keys: "/", does: "Find an event by its id", run: () => input.current?.focus() }]);

  async function jump(text: string): Promise<void> {
    const id = idPattern.exec(text)?.[0].toLowerCase();
    if (id === undefined) {
      setWrong(text.trim() === "" ? null : "An event id is evt_ followed by 26 letters and digits.");
      return;
    }
    try {
      await call(`/v1/events/${id}/attempts`, { query: { size: 1 } });
      setWrong(null);
      openFrom(url);
      route(`/events/${id}`);
    } catch (error) {
      setWrong(error instanceof ApiError ? error.message : String(error));
    }
  }

  return (
    <form
      class="id-search"
      onSubmit={(event) => {
        event.preventDefault();
        void jump(input.current?.value ?? "");
      }}
    >
      <Icon name="search" />
      <input
        ref={input}
        class="input"
        type="search"
        name="id"
        aria-label="Search id"
        placeholder="Search id"
        autocomplete="off"
        spellcheck={false}
        aria-invalid={wrong !== null}
        aria-describedby="id-search-wrong"
        onInput={() => setWrong(null)}
        onBlur={() => setWrong(null)}
      />
      <kbd>/</kbd>
      <p id="id-search-wrong" class="wrong" role="alert">
        {wrong}
      </p>
    </form>
  );
}
