import type { DueDelivery } from "../../domain/delivery.ts";
import { createRecent } from "../../lib/recent.ts";

/**
 * What the dispatcher has learned of late. News travels: a delivery may be offered, or come from a read of the table, when
 * its webhook has been removed since, or its attempt made and settled. Such news is as old as its way is long, so a bounded
 * memory is enough; what is passed over wrongly would be in the table still, and due.
 */
export interface Hindsight {
  webhookRemoved(webhookKey: number): void;
  tenantDeleted(tenantKey: number): void;
  /** The outcome of this attempt is on disk. */
  attemptSettled(delivery: DueDelivery): void;
  /** Nothing is to be sent for it, or not as it stands there. */
  isOutdated(delivery: DueDelivery): boolean;
}

/** About 100 bytes each. */
const remembered = 10_000;

export function createHindsight(): Hindsight {
  const webhooks = createRecent<number, true>(remembered);
  const tenants = createRecent<number, true>(remembered);
  /** By delivery: the attempt after the one that was settled. */
  const next = createRecent<number, { run: number; attemptsInRun: number }>(remembered);

  return {
    webhookRemoved: (webhookKey) => webhooks.set(webhookKey, true),
    tenantDeleted: (tenantKey) => tenants.set(tenantKey, true),
    attemptSettled: ({ deliveryKey, run, attemptsInRun }) =>
      next.set(deliveryKey, { run, attemptsInRun: attemptsInRun + 1 }),
    isOutdated({ webhookKey, tenantKey, deliveryKey, run, attemptsInRun }) {
      if (webhooks.get(webhookKey) || tenants.get(tenantKey)) return true;
      const known = next.get(deliveryKey);
      if (known === undefined) return false;
      return run < known.run || (run === known.run && attemptsInRun < known.attemptsInRun);
    },
  };
}
