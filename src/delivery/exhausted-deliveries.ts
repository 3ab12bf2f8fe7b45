import { isOwnPayload } from "../domain/own-events.ts";
import type { Clock } from "../lib/clock.ts";
import type { Settlement } from "../store/deliveries.ts";
import type { OwnNews, TellAccount } from "./own-events.ts";

/** An account is told about each webhook in turns of this length. */
const turnMs = 60_000;

/** Webhooks remembered as having exhausted deliveries, about 300 bytes each. */
const maxWebhooks = 10_000;

/**
 * A webhook with a delivery that has failed permanently:
 *
 *   ──a delivery fails──▶ told at once, then a turn: what fails in it is counted
 *                           └──it ends──▶ something was counted: that is told, and another turn begins
 *                                   ├──nothing, and the latest delivery succeeded: told as recovered, and forgotten
 *                                   └──nothing else: the next success is told as that, and it is forgotten
 */
interface Exhausted {
  /** Since the last report. */
  count: number;
  /** Counted in a report that was not made, because another server had just made one. */
  untold: number;
  /** About the latest one. */
  news: OwnNews;
  /** The latest delivery succeeded, and this is what to report about it. */
  success: OwnNews | null;
  /** Null: no turn is under way. */
  cancelTurn: (() => void) | null;
}

export interface ExhaustedDeliveries {
  /** Told of every attempt that has settled its record, once it is on disk. */
  attempted(settlement: Settlement): void;
  forget(webhookKeys: readonly number[]): void;
  forgetTenant(tenantKey: number): void;
  stop(): void;
}

/**
 * Tells accounts about deliveries that have failed permanently, and about the first success after that: at most two
 * events a minute per webhook. What another server told instead of this one is in the count of the next report, if more fails.
 */
export function createExhaustedDeliveries({
  clock,
  tell,
}: {
  clock: Pick<Clock, "after">;
  tell: TellAccount;
}): ExhaustedDeliveries {
  /** In the order of their latest reports. */
  const exhausted = new Map<number, Exhausted>();

  function tellExhausted(key: number, entry: Exhausted): void {
    const count = entry.count + entry.untold;
    void tell({ ...entry.news, fields: { count, ...entry.news.fields } }).then((isTold) => {
      if (!isTold) entry.untold += count;
    });
    Object.assign(entry, { count: 0, untold: 0 });
    exhausted.delete(key);
    exhausted.set(key, entry);
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

  /** The one reported longest ago gives way, unless that is less than a turn: it would be reported too often. */
  function makeRoom(): boolean {
    if (exhausted.size < maxWebhooks) return true;
    const [oldest] = exhausted;
    return oldest !== undefined && !oldest[1].cancelTurn && exhausted.delete(oldest[0]);
  }

  function forget(webhookKeys: readonly number[]): void {
    for (const key of webhookKeys) {
      exhausted.get(key)?.cancelTurn?.();
      exhausted.delete(key);
    }
  }

  return {
    attempted(settlement) {
      const { delivery, attempt, next } = settlement;
      const key = delivery.webhookKey;
      const entry = exhausted.get(key);
      if (next.kind === "delivered") {
        if (!entry || isOwnPayload(delivery.payload)) return;
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
      } else if (makeRoom()) {
        tellExhausted(key, { count: 1, untold: 0, news, success: null, cancelTurn: null });
      }
    },

    forget,
    forgetTenant(tenantKey) {
      for (const [key, { news }] of exhausted) if (news.about.tenantKey === tenantKey) forget([key]);
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
