import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useShortcuts } from "../../parts/keyboard.tsx";
import { type ListedRecord, pairOf } from "./record.ts";

export interface RowKeys {
  readonly element: RefObject<HTMLUListElement | null>;
  /** The pair of the selected row, null: none. */
  readonly selected: string | null;
  readonly selectedRecord: ListedRecord | undefined;
  select(pair: string | null): void;
}

/** `j` and `k` move through the rows. The selected row has the focus, so `Enter` opens it like any link. */
export function useRowKeys(records: readonly ListedRecord[], before: string | null): RowKeys {
  const element = useRef<HTMLUListElement>(null);
  const [chosen, select] = useState(before);
  const index = indexOf(records, chosen);

  function focusRow(at: number, options?: FocusOptions): void {
    element.current?.children.item(at)?.querySelector("a")?.focus(options);
  }

  // On return to a list, the row that was left gets the focus again.
  useLayoutEffect(() => {
    if (index >= 0) focusRow(index, { preventScroll: true });
  }, []);

  useShortcuts([
    { keys: "j", does: "Next event", run: () => focusRow(Math.min(index + 1, records.length - 1)) },
    { keys: "k", does: "Previous event", run: () => focusRow(Math.max(index - 1, 0)) },
    {
      keys: "Enter",
      does: "Open the selected event",
      run: () => element.current?.querySelector<HTMLElement>("a.is-open")?.click(),
    },
    {
      keys: "Escape",
      does: "Clear the selection",
      run: () => {
        select(null);
        if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      },
    },
  ]);

  const selectedRecord = records[index];
  return { element, selected: selectedRecord ? pairOf(selectedRecord) : null, selectedRecord, select };
}

/** A replay may give an event another webhook; it is still the selected one. */
function indexOf(records: readonly ListedRecord[], pair: string | null): number {
  const same = records.findIndex((record) => pairOf(record) === pair);
  return same >= 0 ? same : records.findIndex(({ eventId }) => pair?.startsWith(`${eventId} `));
}
