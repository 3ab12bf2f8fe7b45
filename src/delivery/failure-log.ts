import type { FailureCode } from "../domain/failure.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Settlement } from "../store/deliveries.ts";
import type { Store } from "../store/store.ts";

/** How often failing webhooks are reported. */
const summaryEveryMs = 60_000;

/** Lines per kind in that time; the rest becomes one line with a count. */
const linesPerSummary = 50;

/** A webhook is forgotten after this many summaries without an attempt. */
const quietSummaries = 60;

/** Webhooks that are remembered as failing; about 300 bytes each. */
const maxFailing = 10_000;

interface Failing {
  /** Null: not looked up yet. It is kept, as the webhook may be removed before its next line. */
  id: string | null;
  readonly tenantKey: number;
  readonly tenantId: string;
  readonly url: string;
  readonly since: number;
  /** In total. */
  failures: number;
  /** Since its last line. */
  untold: number;
  /** Of the latest attempt. */
  error: string | null;
  code: FailureCode | null;
  eventId: string;
  /** The latest attempt was a success. */
  hasSucceeded: boolean;
  /** Summaries without an attempt. */
  quietFor: number;
}

export interface FailureLog {
  /** Told of every attempt. */
  attempted(settlement: Settlement): void;
}

export interface FailureLogDeps {
  clock: Pick<Clock, "monotonicMs" | "after">;
  log: Log;
  store: Pick<Store, "webhooks">;
}

/**
 * Logs which webhooks fail and why, rather than every attempt: 100,000 dead deliveries were 73 MB of log. A webhook's
 * first failure is logged immediately; from then on it gets one line a minute, with the number of failures and the latest
 * reason, until a minute in which it did not fail and took something: then one line says so, and it starts over.
 *
 * A webhook is named by its id and its host. The rest of its URL may hold a token.
 */
export function createFailureLog({ clock, log, store }: FailureLogDeps): FailureLog {
  const failing = new Map<number, Failing>();
  let isSummaryDue = false;
  /** First failures since the last summary, and what was left out of the log. */
  let firstLines = 0;
  let leftOut = { webhooks: 0, failures: 0 };

  function failed({ delivery, attempt }: Settlement): void {
    const { error, errorCode: code } = attempt;
    const { eventId } = delivery;
    const known = failing.get(delivery.webhookKey);
    if (known) {
      known.failures += 1;
      known.untold += 1;
      known.error = error;
      known.code = code;
      known.eventId = eventId;
      known.hasSucceeded = false;
      known.quietFor = 0;
    } else if (failing.size < maxFailing) {
      const { tenantKey, tenantId, url } = delivery;
      const since = clock.monotonicMs();
      const fresh: Failing = {
        id: null,
        tenantKey,
        tenantId,
        url,
        since,
        failures: 1,
        untold: 0,
        error,
        code,
        eventId,
        hasSucceeded: false,
        quietFor: 0,
      };
      failing.set(delivery.webhookKey, fresh);
      firstLines += 1;
      if (firstLines <= linesPerSummary) void say("warn", "webhook.failing", delivery.webhookKey, fresh, 1);
      else fresh.untold = 1;
    } else {
      leftOut.failures += 1;
    }
    if (isSummaryDue) return;
    isSummaryDue = true;
    clock.after(summaryEveryMs, summarize);
  }

  function summarize(): void {
    isSummaryDue = false;
    firstLines = 0;
    let lines = 0;
    for (const [webhookKey, webhook] of failing) {
      const { untold, hasSucceeded, failures, since } = webhook;
      const hasRecovered = hasSucceeded && untold === 0;
      webhook.quietFor += 1;
      if (hasRecovered || webhook.quietFor > quietSummaries) failing.delete(webhookKey);
      if (untold === 0 && !hasRecovered) continue;
      lines += 1;
      webhook.untold = 0;
      if (lines > linesPerSummary) {
        leftOut.webhooks += 1;
        leftOut.failures += untold;
      } else if (hasRecovered) {
        const seconds = Math.round((clock.monotonicMs() - since) / 1000);
        void say("info", "webhook.recovered", webhookKey, webhook, failures, seconds);
      } else {
        void say("warn", "webhook.failing", webhookKey, webhook, untold);
      }
    }
    if (leftOut.failures > 0 || leftOut.webhooks > 0) log.write("warn", "webhook.more_failing", leftOut);
    leftOut = { webhooks: 0, failures: 0 };
    if (failing.size === 0) return;
    isSummaryDue = true;
    clock.after(summaryEveryMs, summarize);
  }

  async function say(
    level: "info" | "warn",
    event: string,
    webhookKey: number,
    webhook: Failing,
    failures: number,
    seconds?: number,
  ): Promise<void> {
    const { tenantId, tenantKey, url, error, code, eventId } = webhook;
    try {
      webhook.id ??= await idOf(tenantKey, webhookKey);
      // It was removed before it had a line.
      if (webhook.id === null) return;
    } catch {
      // The store is unavailable: the line says what it can.
    }
    const reason = withHostAlone(error ?? "", url);
    log.write(level, event, {
      webhookId: webhook.id,
      host: hostOf(url),
      tenantId,
      failures,
      ...(seconds === undefined ? { code, reason, eventId } : { seconds }),
    });
  }

  /** It is looked up here so that deliveries need not carry it just for the log. @returns null: the webhook was removed */
  const idOf = async (tenantKey: number, webhookKey: number): Promise<string | null> =>
    (await store.webhooks(tenantKey)).find(({ key }) => key === webhookKey)?.id ?? null;

  return {
    attempted(settlement) {
      if (settlement.next.kind !== "delivered") return failed(settlement);
      const known = failing.size === 0 ? undefined : failing.get(settlement.delivery.webhookKey);
      if (known) known.hasSucceeded = true;
    },
  };
}

const hostOf = (url: string) => URL.parse(url)?.host ?? "";

/** Reasons contain the whole URL, meant for the tenant it belongs to. */
const withHostAlone = (reason: string, url: string) => reason.replaceAll(url, hostOf(url));
