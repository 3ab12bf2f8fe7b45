import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { accountId } from "../../api/session.ts";
import type { Webhook } from "../../api/types.ts";
import { noteUnsaved } from "../../session/unsaved.ts";
import { changesInWords, type Draft, rebase, toDraft } from "./draft.ts";

/** Outlives the view: a user who looks something up elsewhere finds the changes again. */
const kept = signal<{ readonly tenantId: string; readonly rows: Draft } | null>(null);

export interface Editing {
  readonly rows: Draft;
  /** "1 added, 1 removed"; "" when there is nothing to save. */
  readonly changes: string;
  change(rows: Draft): void;
  discard(): void;
  /** Whether these are still the rows, or they have been changed since. */
  isLatest(): boolean;
}

const path = "/webhooks";

/** The list being edited, on top of what is registered. */
export function useDraft(registered: readonly Webhook[]): Editing {
  const tenantId = accountId.value;
  const before = kept.value;
  const rows = before?.tenantId === tenantId ? rebase(before.rows, registered) : toDraft(registered);
  const changes = changesInWords(rows);

  useEffect(() => {
    noteUnsaved(path, changes === "" ? null : "You have unsaved changes to your webhooks.");
  }, [changes]);

  return {
    rows,
    changes,
    change(edited) {
      kept.value = changesInWords(edited) === "" ? null : { tenantId, rows: edited };
    },
    discard() {
      kept.value = null;
      noteUnsaved(path, null);
    },
    isLatest: () => kept.peek() === before,
  };
}
