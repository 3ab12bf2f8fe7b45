import type { Act } from "../domain/audit.ts";
import { isUnavailable } from "../domain/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

/**
 * Notes acts that happened outside the store. An act cannot be undone just because its entry could not be written, so that is
 * only logged.
 */
export type NoteAct = (act: Act) => Promise<void>;

export function createNoteAct({ store, log }: { store: Pick<Store, "noteAct">; log: Log }): NoteAct {
  return async (act) => {
    try {
      await store.noteAct(null, act);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      log.write("error", "audit.not_noted", { action: act.action, by: act.via, code: error.code });
    }
  };
}
