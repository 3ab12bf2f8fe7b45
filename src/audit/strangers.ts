import type { AuditAction } from "../domain/audit.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";

/** Notes that somebody gave a wrong password for an account (null: a wrong operator token). Nobody waits for it. */
export type NoteStranger = (action: AuditAction, tenantId: string | null, address: string) => void;

export interface Strangers {
  note: NoteStranger;
  /** Writes what has been noted, and resolves once it is written or has failed. */
  flush(): Promise<void>;
}

/** A guesser is noted this much later: all its guesses within that time are one write. */
const flushIntervalMs = 2_000;

/** How many are kept apart until they are written. Those beyond are counted together per account, without an address. */
const mostApart = 1_000;

interface Guesses {
  readonly action: AuditAction;
  readonly tenantId: string | null;
  readonly address: string | null;
  times: number;
}

/**
 * Wrong passwords and tokens on their way to the store. If each were a separate write, guessing would be a way to keep the
 * disk busy; and a response that waited for the write would reveal which accounts exist.
 */
export function createStrangers({ store, clock }: { store: Pick<Store, "noteAct">; clock: Clock }): Strangers {
  let guesses = new Map<string, Guesses>();
  let cancelTimer: (() => void) | null = null;

  function count(action: AuditAction, tenantId: string | null, address: string | null): void {
    const key = JSON.stringify([action, tenantId, address]);
    const known = guesses.get(key);
    if (known) known.times += 1;
    else if (guesses.size < mostApart || address === null) guesses.set(key, { action, tenantId, address, times: 1 });
    else count(action, tenantId, null);
  }

  let writing = Promise.resolve();

  function flush(): Promise<void> {
    cancelTimer?.();
    cancelTimer = null;
    writing = writing.then(write);
    return writing;
  }

  async function write(): Promise<void> {
    const written = guesses;
    guesses = new Map();
    for (const { action, tenantId, address, times } of written.values()) {
      // The store reports its own failures, and nothing should wait because of a guess.
      await store.noteAct(tenantId, { action, actor: "stranger", via: null, address }, times).catch(() => {});
    }
  }

  return {
    note(action, tenantId, address) {
      count(action, tenantId, address);
      cancelTimer ??= clock.after(flushIntervalMs, () => void flush());
    },
    flush,
  };
}
