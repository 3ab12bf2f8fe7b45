import type { Act } from "../domain/audit.ts";
import { isUnavailable } from "../domain/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

/**
 * Notes acts that happened outside the store. An act cannot be undone just because its entry could not be written, so that is
 * only logged.
 * @param tenantId null: the act is about the server
 */
export type NoteAct = (act: Act, tenantId?: string | null) => Promise<void>;

export function createNoteAct({ store, log }: { store: Pick<Store, "noteAct">; log: Log }): NoteAct {
  return async (act, tenantId = null) => {
    try {
      await store.noteAct(tenantId, act);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      log.write("error", "audit.not_noted", { action: act.action, by: act.via, code: error.code });
    }
  };
}
