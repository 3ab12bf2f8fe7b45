import { isOwnPayload } from "../domain/own-events.ts";
import type { Clock } from "../lib/clock.ts";
import type { Settlement } from "../store/deliveries.ts";
import type { OwnNews, TellAccount } from "./own-events.ts";

/** What an account is told about one webhook takes turns of this length. */
const turnMs = 60_000;

/** Webhooks that are known to have failed for good, about 300 bytes each; of more of them nothing is told. */
const maxWebhooks = 10_000;

/**
 * A webhook of which a delivery has failed for good:
 *
 *   ──a delivery fails──▶ told at once, then a turn: what fails in it is counted
 *                           └──it ends──▶ something was counted: that is told, and another turn begins
 *                                   ├──nothing, and the latest delivery succeeded: told as recovered, and forgotten
 *                                   └──nothing else: the next success is told as that, and it is forgotten
 */
interface Exhausted {
  /** Since it was told last. */
  count: number;
  /** Of the latest one. */
  news: OwnNews;
  /** The latest delivery succeeded, and this is to be told of it. */
  success: OwnNews | null;
  /** Null: no turn is under way. */
  cancelTurn: (() => void) | null;
}

export interface ExhaustedDeliveries {
  /** Told of every attempt, once it is on disk. */
  attempted(settlement: Settlement): void;
  forget(webhookKeys: readonly number[]): void;
  stop(): void;
}

/**
 * Tells accounts of deliveries that have failed for good, and when one succeeds again: two events a minute for a webhook at
 * most.
 */
export function createExhaustedDeliveries({
  clock,
  tell,
}: {
  clock: Pick<Clock, "after">;
  tell: TellAccount;
}): ExhaustedDeliveries {
  const exhausted = new Map<number, Exhausted>();

  function tellExhausted(key: number, entry: Exhausted): void {
    void tell({ ...entry.news, fields: { count: entry.count, ...entry.news.fields } });
    entry.count = 0;
    entry.cancelTurn = clock.after(turnMs, () => {
      entry.cancelTurn = null;
      if (entry.count > 0) tellExhausted(key, entry);
      else if (entry.success) tellRecovered(key, entry.success);
    });
  }

  function tellRecovered(key: number, success: OwnNews): void {
    exhausted.delete(key);
    void tell(success);
  }

  return {
    attempted(settlement) {
      const { delivery, attempt, next } = settlement;
      const key = delivery.webhookKey;
      const entry = exhausted.get(key);
      if (next.kind === "delivered") {
        if (!entry) return;
        const success = newsOf("postrider.delivery.recovered", settlement, { event_id: delivery.eventId });
        if (entry.cancelTurn) entry.success = success;
        else tellRecovered(key, success);
        return;
      }
      if (next.kind === "retry" || isOwnPayload(delivery.payload)) return;
      const { errorCode, statusCode } = attempt;
      const latest = { event_id: delivery.eventId, error_code: errorCode, status_code: statusCode };
      const news = newsOf("postrider.delivery.exhausted", settlement, { latest });
      if (entry) {
        Object.assign(entry, { count: entry.count + 1, news, success: null });
        if (!entry.cancelTurn) tellExhausted(key, entry);
      } else if (exhausted.size < maxWebhooks) {
        const fresh: Exhausted = { count: 1, news, success: null, cancelTurn: null };
        exhausted.set(key, fresh);
        tellExhausted(key, fresh);
      }
    },

    forget(webhookKeys) {
      for (const key of webhookKeys) {
        exhausted.get(key)?.cancelTurn?.();
        exhausted.delete(key);
      }
    },

    stop() {
      for (const { cancelTurn } of exhausted.values()) cancelTurn?.();
    },
  };
}

const newsOf = (
  type: OwnNews["type"],
  { delivery: { tenantKey, webhookKey, tenantId } }: Settlement,
  fields: OwnNews["fields"],
): OwnNews => ({ type, about: { tenantKey, webhookKey }, tenantId, fields });
