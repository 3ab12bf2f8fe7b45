import { DomainError, unavailable } from "../domain/errors.ts";
import type { Clock } from "../lib/clock.ts";
import type { NodeLease } from "../store/node-lease.ts";
import type { Store } from "../store/store.ts";
import { createSharedProbe } from "./shared-probe.ts";

export interface ReadinessDeps {
  store: Pick<Store, "probe" | "oldestWaitingWriteMs">;
  lease: Pick<NodeLease, "mayStart">;
  hasRoom(): boolean;
  clock: Clock;
}

/** Why the server does not accept events; null when it does. Never throws. */
export type Readiness = () => Promise<DomainError | null>;

/** A write that has waited longer than this is stuck. */
const stuckAfterMs = 5000;
/** Probes get an answer within two seconds, even while a write waits. */
const patienceMs = 1500;

/**
 * Ready means: the database accepts writes, its secrets decrypt, the disk is above its floor, no write is stuck, and the
 * server may deliver what it accepts.
 */
export function createReadiness({ store, lease, hasRoom, clock }: ReadinessDeps): Readiness {
  const probe = createSharedProbe(() => store.probe(), clock);

  async function look(): Promise<DomainError | null> {
    if (!hasRoom()) return unavailable("The disk is almost full.", "storage_full", 30);
    if (!lease.mayStart()) return cutOff();
    if (store.oldestWaitingWriteMs() > stuckAfterMs) return stuck();
    try {
      await probe();
      return null;
    } catch (error) {
      return error instanceof DomainError ? error : stuck();
    }
  }

  return () =>
    new Promise((resolve) => {
      const cancel = clock.after(patienceMs, () => resolve(stuck()));
      void look()
        .catch(stuck)
        .then((refusal) => {
          cancel();
          resolve(refusal);
        });
    });
}

/** The database may answer again soon, but until it has for a heartbeat, another node is the better choice. */
const cutOff = () =>
  unavailable("This server has lost touch with the database, and does not deliver.", "storage_unavailable", 5);
const stuck = () => unavailable("The storage does not accept writes.", "storage_unavailable", 5);
